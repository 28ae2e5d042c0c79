"""
One module a provider: its API in, its words and signatures out.

Each is written from what its provider documents, and knows nothing of our profile of it.
"""

from __future__ import annotations

from edge.pretend.dialects.common import Dialect
from edge.pretend.dialects.dashscope import DashScope
from edge.pretend.dialects.did import DId
from edge.pretend.dialects.fal import Fal
from edge.pretend.dialects.heygen import HeyGen
from edge.pretend.dialects.kling import Kling
from edge.pretend.dialects.kling_legacy import KlingLegacy
from edge.pretend.dialects.luma import Luma
from edge.pretend.dialects.minimax import MiniMax
from edge.pretend.dialects.mux import Mux
from edge.pretend.dialects.openai_videos import OpenAiVideos
from edge.pretend.dialects.replicate import Replicate
from edge.pretend.dialects.runway import Runway
from edge.pretend.dialects.seedance import Seedance
from edge.pretend.dialects.synthesia import Synthesia
from edge.pretend.dialects.veo import Veo
from edge.pretend.dialects.vidu import Vidu

DIALECTS: dict[str, type[Dialect]] = {
    "dashscope": DashScope,
    "did": DId,
    "fal": Fal,
    "heygen": HeyGen,
    "kling": Kling,
    "kling_legacy": KlingLegacy,
    "luma": Luma,
    "minimax": MiniMax,
    "mux": Mux,
    "openai_videos": OpenAiVideos,
    "replicate": Replicate,
    "runway": Runway,
    "seedance": Seedance,
    "synthesia": Synthesia,
    "veo": Veo,
    "vidu": Vidu,
}
