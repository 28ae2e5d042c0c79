"""
Registration challenges: the one answer without a row.

Some providers ask an address, before they use it, to repeat a word. The answer is made from the
request alone; whether we gave out the token in its address is all that is looked up.
"""

from __future__ import annotations

import orjson

LONGEST_BODY = 1024
LONGEST_WORD = 256


def echo(name: str, body: bytes) -> bytes | None:
    """Return the answer to `{name: word}` and nothing else, or None if that is not what it is."""
    if len(body) > LONGEST_BODY:
        return None
    try:
        asked = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(asked, dict) or set(asked) != {name}:
        return None
    word = asked[name]
    if not isinstance(word, str) or not 1 <= len(word) <= LONGEST_WORD:
        return None
    return orjson.dumps({name: word})
