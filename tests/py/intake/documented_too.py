"""More of what providers document: see `documented`."""

from __future__ import annotations

from tests.py.intake.documented import CALLBACK, CLIENT, Conversation, Exchange, bearer

CONVERSATIONS = [
    Conversation(
        provider="seedance",
        base="/api/v3",
        model="doubao-seedance-1-0-pro",
        input={"content": [{"type": "text", "text": "x"}]},
        secrets={"ARK_API_KEY": "ark-key"},
        identity=bearer("ark-key"),
        submit=Exchange(
            "POST /api/v3/contents/generations/tasks",
            {"id": "cgt-1"},
            body={
                "content": [{"type": "text", "text": "x"}],
                "model": "doubao-seedance-1-0-pro",
                "callback_url": CALLBACK,
            },
        ),
        polls=[
            Exchange(
                "GET /api/v3/contents/generations/tasks/cgt-1", {"id": "cgt-1", "status": "queued"}
            ),
            Exchange(
                "GET /api/v3/contents/generations/tasks/cgt-1",
                {"status": "succeeded", "content": {"video_url": "https://cdn.example/o"}},
            ),
        ],
        outputs=["https://cdn.example/o"],
        cancel=Exchange("DELETE /api/v3/contents/generations/tasks/cgt-1", {}),
    ),
    Conversation(
        provider="veo",
        base="/v1beta",
        model="veo-3.1-generate-preview",
        input={"instances": [{"prompt": "x"}], "parameters": {"aspectRatio": "16:9"}},
        secrets={"GEMINI_API_KEY": "g-key"},
        identity={"x-goog-api-key": "g-key"},
        submit=Exchange(
            "POST /v1beta/models/veo-3.1-generate-preview:predictLongRunning",
            {"name": "models/veo-3.1-generate-preview/operations/o1"},
            body={
                "instances": [{"prompt": "x"}],
                "parameters": {"aspectRatio": "16:9"},
                "webhookConfig": {
                    "uris": [CALLBACK],
                    "userMetadata": {"client_request_id": CLIENT},
                },
            },
        ),
        polls=[
            Exchange(
                "GET /v1beta/models/veo-3.1-generate-preview/operations/o1",
                {"name": "models/veo-3.1-generate-preview/operations/o1"},
            ),
            Exchange(
                "GET /v1beta/models/veo-3.1-generate-preview/operations/o1",
                {
                    "name": "models/veo-3.1-generate-preview/operations/o1",
                    "done": True,
                    "response": {
                        "generateVideoResponse": {
                            "generatedSamples": [{"video": {"uri": "https://g.example/v"}}]
                        }
                    },
                },
            ),
        ],
        outputs=["https://g.example/v"],
    ),
    Conversation(
        provider="heygen",
        model="avatar",
        input={"title": "x", "avatar_id": "a"},
        secrets={"HEYGEN_API_KEY": "h-key"},
        identity={"x-api-key": "h-key"},
        submit=Exchange(
            "POST /v3/videos",
            {"data": {"video_id": "v1", "status": "waiting"}},
            body={"title": "x", "avatar_id": "a", "callback_id": CLIENT},
            headers={"idempotency-key": CLIENT},
        ),
        polls=[
            Exchange("GET /v3/videos/v1", {"data": {"id": "v1", "status": "processing"}}),
            Exchange(
                "GET /v3/videos/v1",
                {
                    "data": {
                        "id": "v1",
                        "status": "completed",
                        "video_url": "https://cdn.example/o",
                    }
                },
            ),
        ],
        outputs=["https://cdn.example/o"],
    ),
    Conversation(
        provider="synthesia",
        base="/v2",
        model="any",
        input={"title": "x", "input": []},
        secrets={"SYNTHESIA_API_KEY": "s-key"},
        identity={"authorization": "s-key"},
        submit=Exchange(
            "POST /v2/videos",
            {"id": "4e2b", "status": "in_progress"},
            201,
            body={"title": "x", "input": [], "callbackId": CLIENT},
        ),
        polls=[
            Exchange("GET /v2/videos/4e2b", {"id": "4e2b", "status": "in_progress"}),
            Exchange("GET /v2/videos/4e2b", {"status": "complete", "download": "https://c.ex/o"}),
        ],
        outputs=["https://c.ex/o"],
    ),
    Conversation(
        provider="did",
        model="talks",
        input={"source_url": "https://us.example/i.png"},
        secrets={"DID_API_KEY": "bWU=:pass"},
        identity={"authorization": "Basic bWU=:pass"},
        submit=Exchange(
            "POST /talks",
            {"id": "tlk_1", "status": "created"},
            201,
            body={
                "source_url": "https://us.example/i.png",
                "webhook": CALLBACK,
                "user_data": CLIENT,
            },
        ),
        polls=[
            Exchange("GET /talks/tlk_1", {"id": "tlk_1", "status": "started"}),
            Exchange("GET /talks/tlk_1", {"status": "done", "result_url": "https://c.ex/o"}),
        ],
        outputs=["https://c.ex/o"],
    ),
    Conversation(
        provider="openai_videos",
        base="/v1",
        model="sora-2",
        input={"prompt": "x", "seconds": "8"},
        secrets={"OPENAI_VIDEOS_API_KEY": "sk-o"},
        identity=bearer("sk-o"),
        submit=Exchange(
            "POST /v1/videos",
            {"id": "video_1", "status": "queued", "progress": 0},
            body={"prompt": "x", "seconds": "8", "model": "sora-2"},
        ),
        polls=[
            Exchange("GET /v1/videos/video_1", {"status": "in_progress", "progress": 40}),
            Exchange("GET /v1/videos/video_1", {"id": "video_1", "status": "completed"}),
        ],
        outputs=["BASE/videos/video_1/content"],
    ),
    Conversation(
        provider="mux",
        base="/video/v1",
        model="transcode",
        input={"inputs": [{"url": "https://us.example/in.mp4"}], "playback_policies": ["public"]},
        secrets={"MUX_TOKEN_ID": "id", "MUX_TOKEN_SECRET": "secret"},
        identity={"authorization": "Basic aWQ6c2VjcmV0"},
        submit=Exchange(
            "POST /video/v1/assets",
            {"data": {"id": "a1", "status": "preparing"}},
            201,
            body={
                "inputs": [{"url": "https://us.example/in.mp4"}],
                "playback_policies": ["public"],
                "passthrough": CLIENT,
            },
        ),
        polls=[
            Exchange("GET /video/v1/assets/a1", {"data": {"id": "a1", "status": "preparing"}}),
            Exchange(
                "GET /video/v1/assets/a1",
                {"data": {"id": "a1", "status": "ready", "playback_ids": [{"id": "p1"}]}},
            ),
        ],
        outputs=["https://stream.mux.com/p1.m3u8"],
        cancel=Exchange("DELETE /video/v1/assets/a1", None, 204),
    ),
]
