"""Every dialect turns away who has no token and what makes no sense, and never breaks."""

from __future__ import annotations

from typing import Any

import pytest

from edge.pretend.dialects import DIALECTS
from edge.pretend.dialects.common import Account, Dialect
from tests.py.pretend.conftest import SECRET, running

PLACES = {
    "fal": "/fal-ai/model",
    "heygen": "/v3/videos",
    "kling": "/text-to-video/kling-3.0",
    "minimax": "/v1/video_generation",
    "veo": "/v1beta/models/veo:predictLongRunning",
}
NONSENSE: list[bytes] = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'"x"',
    b"\xff\xfe",
    b"[" * 5000,
    b'{"prompt": "pretend:{"}',
    b'{"prompt": "pretend:[1]", "model": "m", "input": {}, "inputs": [1], "content": [1]}',
    b'{"callback_url": 7, "webhook": {}, "options": 3, "webhook_config": 5, "instances": [1]}',
]


def place(name: str) -> str:
    return PLACES.get(name) or DIALECTS[name].submits[0]


@pytest.mark.parametrize("name", sorted(DIALECTS))
async def test_who_has_no_token_learns_nothing(name: str) -> None:
    async with running(dialect=name) as provider:
        for headers in ({"authorization": ""}, {"authorization": "Bearer nobody"}):
            response = await provider.http.post(place(name), json={}, headers=headers)
            assert response.status_code == 401
        assert (await provider.http.get("/pretend/report")).json()["submissions"] == 0


@pytest.mark.parametrize("name", sorted(DIALECTS))
async def test_nonsense_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DIALECTS[name], "authorised", lambda _dialect, _request: True)
    async with running(dialect=name) as provider:
        for body in NONSENSE:
            response = await provider.http.post(place(name), content=body)
            assert response.status_code < 500, body
        assert (await provider.http.get("/pretend/report")).json()["jobs"] <= 2


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_an_account_has_a_token(name: str) -> None:
    dialect: type[Dialect] = DIALECTS[name]
    with pytest.raises(ValueError):
        dialect(Account("", SECRET))
    made: Any = dialect(Account("token", SECRET))
    assert made.new_id() != made.new_id()
