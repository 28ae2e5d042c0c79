"""
One module a provider: its API in, its words and signatures out.

Each is written from what its provider documents, and knows nothing of our profile of it.
"""

from __future__ import annotations

from edge.pretend.dialects.common import Dialect
from edge.pretend.dialects.replicate import Replicate

DIALECTS: dict[str, type[Dialect]] = {
    "replicate": Replicate,
}
