"""
What providers document of their requests, as conversations: what must arrive, and what they answer.

CALLBACK stands for the job's callback URL, CLIENT for its client_request_id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

JSON = {"content-type": "application/json"}
CALLBACK = "CALLBACK"
CLIENT = "CLIENT"


@dataclass(frozen=True)
class Exchange:
    """A request as a provider must get it, and the provider's answer."""

    line: str
    answer: Any
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Conversation:
    """
    A job's life at one provider. `base` is the path of its base URL.

    `identity` goes with every request. `cancel` is what tells the provider that a second job,
    which the first poll saw running, is not wanted; None where it cannot be told.
    """

    provider: str
    model: str
    input: dict[str, Any]
    secrets: dict[str, str]
    identity: dict[str, str]
    submit: Exchange
    polls: list[Exchange]
    outputs: list[str]
    base: str = ""
    cancel: Exchange | None = None


def bearer(value: str) -> dict[str, str]:
    return {"authorization": f"Bearer {value}"}


RUNWAY = {"x-runway-version": "2024-11-06"}
KLING_TOKEN = {"KLING_ACCESS_KEY": "ak", "KLING_SECRET_KEY": "0123456789abcdef0123456789abcdef"}

CONVERSATIONS = [
    Conversation(
        provider="fal",
        model="fal-ai/minimax/video-01/image-to-video",
        input={"prompt": "a whale"},
        secrets={"FAL_KEY": "id:key"},
        identity={"authorization": "Key id:key"},
        submit=Exchange(
            "POST /fal-ai/minimax/video-01/image-to-video?fal_webhook=CALLBACK",
            {"request_id": "r1", "status_url": "https://elsewhere.example/", "queue_position": 0},
            body={"prompt": "a whale"},
            headers=JSON,
        ),
        polls=[
            Exchange(
                "GET /fal-ai/minimax/requests/r1/status",
                {"status": "IN_QUEUE", "request_id": "r1"},
                202,
            ),
            Exchange(
                "GET /fal-ai/minimax/requests/r1/status",
                {"status": "COMPLETED", "request_id": "r1"},
            ),
            Exchange(
                "GET /fal-ai/minimax/requests/r1", {"video": {"url": "https://v3.fal.media/o.mp4"}}
            ),
        ],
        outputs=["https://v3.fal.media/o.mp4"],
        cancel=Exchange(
            "PUT /fal-ai/minimax/requests/r1/cancel", {"status": "CANCELLATION_REQUESTED"}, 202
        ),
    ),
    Conversation(
        provider="fal",
        model="workflows/somebody/film/deep",
        input={"prompt": "x"},
        secrets={"FAL_KEY": "id:key"},
        identity={"authorization": "Key id:key"},
        submit=Exchange(
            "POST /workflows/somebody/film/deep?fal_webhook=CALLBACK",
            {"request_id": "r1"},
            body={"prompt": "x"},
        ),
        polls=[
            Exchange(
                "GET /workflows/somebody/film/requests/r1/status",
                {"status": "COMPLETED", "request_id": "r1"},
            ),
            Exchange(
                "GET /workflows/somebody/film/requests/r1",
                {"videos": [{"url": "https://v3.fal.media/o.mp4"}]},
            ),
        ],
        outputs=["https://v3.fal.media/o.mp4"],
    ),
    Conversation(
        provider="runway",
        model="image_to_video/gen4_turbo",
        input={"promptImage": "https://us.example/i.png", "ratio": "1280:720", "model": "other"},
        secrets={"RUNWAYML_API_SECRET": "key_1"},
        identity={**bearer("key_1"), **RUNWAY},
        submit=Exchange(
            "POST /v1/image_to_video",
            {"id": "t1", "estimatedCost": {"credits": 25}},
            body={
                "promptImage": "https://us.example/i.png",
                "ratio": "1280:720",
                "model": "gen4_turbo",
            },
            headers=JSON,
        ),
        polls=[
            Exchange("GET /v1/tasks/t1", {"id": "t1", "status": "RUNNING", "progress": 0.42}),
            Exchange(
                "GET /v1/tasks/t1",
                {"id": "t1", "status": "SUCCEEDED", "output": ["https://cdn.example/o.mp4"]},
            ),
        ],
        outputs=["https://cdn.example/o.mp4"],
        cancel=Exchange("DELETE /v1/tasks/t1", None, 204),
    ),
    Conversation(
        provider="luma",
        base="/dream-machine/v1",
        model="ray-2",
        input={"prompt": "x", "callback_url": "https://evil.example"},
        secrets={"LUMAAI_API_KEY": "luma-key"},
        identity=bearer("luma-key"),
        submit=Exchange(
            "POST /dream-machine/v1/generations/video",
            {"id": "g1", "state": "queued"},
            201,
            body={"prompt": "x", "model": "ray-2", "callback_url": CALLBACK},
        ),
        polls=[
            Exchange("GET /dream-machine/v1/generations/g1", {"id": "g1", "state": "dreaming"}),
            Exchange(
                "GET /dream-machine/v1/generations/g1",
                {"id": "g1", "state": "completed", "assets": {"video": "https://cdn.example/o"}},
            ),
        ],
        outputs=["https://cdn.example/o"],
    ),
    Conversation(
        provider="kling",
        model="text-to-video/kling-3.0",
        input={"prompt": "x", "options": {"sound": "on", "external_task_id": "theirs"}},
        secrets={"KLING_API_KEY": "kling-key"},
        identity=bearer("kling-key"),
        submit=Exchange(
            "POST /text-to-video/kling-3.0",
            {"code": 0, "data": {"id": "77", "status": "submitted"}},
            body={
                "prompt": "x",
                "options": {"sound": "on", "callback_url": CALLBACK, "external_task_id": CLIENT},
            },
        ),
        polls=[
            Exchange("GET /tasks?task_ids=77", {"code": 0, "data": [{"status": "processing"}]}),
            Exchange(
                "GET /tasks?task_ids=77",
                {
                    "code": 0,
                    "data": [
                        {"status": "succeeded", "outputs": [{"url": "https://cdn.example/o.mp4"}]}
                    ],
                },
            ),
        ],
        outputs=["https://cdn.example/o.mp4"],
    ),
    Conversation(
        provider="kling_legacy",
        model="image2video/kling-v1-6",
        input={"image": "https://us.example/i.png"},
        secrets=KLING_TOKEN,
        identity={"authorization": "Bearer <token of ak>"},
        submit=Exchange(
            "POST /v1/videos/image2video",
            {"code": 0, "data": {"task_id": "77"}},
            body={
                "image": "https://us.example/i.png",
                "model_name": "kling-v1-6",
                "callback_url": CALLBACK,
                "external_task_id": CLIENT,
            },
        ),
        polls=[
            Exchange(
                "GET /v1/videos/image2video/77",
                {
                    "code": 0,
                    "data": {
                        "task_status": "succeed",
                        "task_result": {"videos": [{"url": "https://cdn.example/o.mp4"}]},
                    },
                },
            )
        ],
        outputs=["https://cdn.example/o.mp4"],
    ),
    Conversation(
        provider="minimax",
        model="MiniMax-Hailuo-02",
        input={"prompt": "x"},
        secrets={"MINIMAX_API_KEY": "mm-key"},
        identity=bearer("mm-key"),
        submit=Exchange(
            "POST /v1/video_generation",
            {"task_id": "1", "base_resp": {"status_code": 0}},
            body={"prompt": "x", "model": "MiniMax-Hailuo-02", "callback_url": CALLBACK},
        ),
        polls=[
            Exchange("GET /v1/query/video_generation?task_id=1", {"status": "Queueing"}),
            Exchange(
                "GET /v1/query/video_generation?task_id=1", {"status": "Success", "file_id": 9}
            ),
            Exchange(
                "GET /v1/files/retrieve?file_id=9",
                {"file": {"download_url": "https://cdn.example/o.mp4"}},
            ),
        ],
        outputs=["https://cdn.example/o.mp4"],
    ),
    Conversation(
        provider="vidu",
        model="img2video/viduq1",
        input={"images": ["https://us.example/i.png"]},
        secrets={"VIDU_API_KEY": "vda_key"},
        identity={"authorization": "Token vda_key"},
        submit=Exchange(
            "POST /ent/v2/img2video",
            {"task_id": "7", "state": "created"},
            body={
                "images": ["https://us.example/i.png"],
                "model": "viduq1",
                "callback_url": CALLBACK,
                "payload": CLIENT,
            },
        ),
        polls=[
            Exchange("GET /ent/v2/tasks/7/creations", {"state": "queueing"}),
            Exchange(
                "GET /ent/v2/tasks/7/creations",
                {"state": "success", "creations": [{"url": "https://cdn.example/o.mp4"}]},
            ),
        ],
        outputs=["https://cdn.example/o.mp4"],
        cancel=Exchange("POST /ent/v2/tasks/7/cancel", {}, body={}),
    ),
    Conversation(
        provider="vidu",
        model="template",
        input={"template": "hugging"},
        secrets={"VIDU_API_KEY": "vda_key"},
        identity={"authorization": "Token vda_key"},
        submit=Exchange(
            "POST /ent/v2/template",
            {"task_id": "7"},
            body={"template": "hugging", "callback_url": CALLBACK, "payload": CLIENT},
        ),
        polls=[],
        outputs=[],
    ),
    Conversation(
        provider="dashscope",
        base="/api/v1",
        model="wan2.5-t2v-preview",
        input={"input": {"prompt": "x"}, "parameters": {"size": "832*480"}},
        secrets={"DASHSCOPE_API_KEY": "sk-ds"},
        identity=bearer("sk-ds"),
        submit=Exchange(
            "POST /api/v1/services/aigc/video-generation/video-synthesis",
            {"output": {"task_id": "t1", "task_status": "PENDING"}},
            body={
                "model": "wan2.5-t2v-preview",
                "input": {"prompt": "x"},
                "parameters": {"size": "832*480"},
            },
            headers={"x-dashscope-async": "enable"},
        ),
        polls=[
            Exchange("GET /api/v1/tasks/t1", {"output": {"task_status": "PENDING"}}),
            Exchange(
                "GET /api/v1/tasks/t1",
                {"output": {"task_status": "SUCCEEDED", "video_url": "https://cdn.example/o"}},
            ),
        ],
        outputs=["https://cdn.example/o"],
        cancel=Exchange("POST /api/v1/tasks/t1/cancel", {"request_id": "q"}),
    ),
]
