"""
A job for each shipped profile: the model and the input that a task of it has.

A model is named as the profile says, an input is the provider's own request. The script of the
pretend provider goes along in the one text that every provider takes, the prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """A model, and an input that carries a text."""

    model: str
    input: Callable[[str], dict[str, Any]]


def _prompt(text: str) -> dict[str, Any]:
    return {"prompt": text}


SAMPLES: dict[str, Sample] = {
    "dashscope": Sample("wan2.5-t2v-preview", lambda text: {"input": {"prompt": text}}),
    "did": Sample("talks", lambda text: {"script": {"type": "text", "input": text}}),
    "fal": Sample("fal-ai/minimax/video-01", _prompt),
    "heygen": Sample("avatar", lambda text: {"title": text, "avatar_id": "a"}),
    "kling": Sample("text-to-video/kling-3.0", _prompt),
    "kling_legacy": Sample("text2video/kling-v1-6", _prompt),
    "luma": Sample("ray-2", _prompt),
    "minimax": Sample("MiniMax-Hailuo-02", _prompt),
    "mux": Sample("asset", lambda text: {"inputs": [{"url": text}]}),
    "openai_videos": Sample("sora-2", _prompt),
    "replicate": Sample("pretend/film", _prompt),
    "runway": Sample("text_to_video/gen4_turbo", lambda text: {"promptText": text}),
    "seedance": Sample(
        "seedance-1-pro", lambda text: {"content": [{"type": "text", "text": text}]}
    ),
    "synthesia": Sample("avatar", lambda text: {"input": [{"scriptText": text}]}),
    "veo": Sample("veo-3.1-generate-preview", lambda text: {"instances": [{"prompt": text}]}),
    "vidu": Sample("text2video/viduq1", _prompt),
}
