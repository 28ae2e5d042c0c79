"""How requests identify us: each kind, from references, and nothing of it in what comes back."""

from __future__ import annotations

import base64
from typing import Any

import jwt
import pytest

from edge.intake import credentials
from edge.intake.credentials import Credential, Missing
from edge.intake.secrets import Secrets

SECRETS = Secrets(
    {
        "KEY": "s3cret-key",
        "ID": "account",
        "PAIR": "account:s3cret:with:colons",
        "SIGNING": "0123456789abcdef0123456789abcdef",
        "LINES": "first\nsecond",
    }
)
NOW = 1_782_270_000.7


async def resolve(**auth: Any) -> Credential:
    return await credentials.resolve(auth, SECRETS, NOW)


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ({"kind": "bearer"}, "authorization", "Bearer s3cret-key"),
        ({"kind": "bearer", "header": "X-Auth", "prefix": ""}, "x-auth", "s3cret-key"),
        ({"kind": "header", "header": "X-Api-Key"}, "x-api-key", "s3cret-key"),
        (
            {"kind": "header", "header": "authorization", "prefix": "Key "},
            "authorization",
            "Key s3cret-key",
        ),
    ],
)
async def test_a_secret_in_a_header(auth: dict[str, Any], header: str, value: str) -> None:
    found = await resolve(secret="env:KEY", **auth)
    assert (found.header, found.value) == (header, value)


async def test_none_is_no_header() -> None:
    assert await credentials.resolve(None, SECRETS, NOW) == credentials.NONE
    assert await resolve(kind="none") == credentials.NONE


@pytest.mark.parametrize(
    ("auth", "plain"),
    [
        ({"id": "env:ID", "secret": "env:KEY"}, b"account:s3cret-key"),
        ({"secret": "env:PAIR"}, b"account:s3cret:with:colons"),
        ({"id": None, "secret": "env:PAIR"}, b"account:s3cret:with:colons"),
    ],
)
async def test_basic_of_two_references_or_of_one(auth: dict[str, Any], plain: bytes) -> None:
    found = await resolve(kind="basic", **auth)
    kind, _, coded = found.value.partition(" ")
    assert (found.header, kind, base64.b64decode(coded)) == ("authorization", "Basic", plain)


async def test_a_token_is_signed_for_a_short_while() -> None:
    found = await resolve(
        kind="jwt-hs256", id="env:ID", secret="env:SIGNING", lifetime_s=1800, early_s=5
    )
    token = found.value.removeprefix("Bearer ")
    claims = jwt.decode(
        token,
        "0123456789abcdef0123456789abcdef",
        algorithms=["HS256"],
        options={"verify_exp": False, "verify_nbf": False},
    )
    assert claims == {"iss": "account", "exp": 1_782_271_800, "nbf": 1_782_269_995}
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT"}


@pytest.mark.parametrize("reference", ["env:ABSENT", "file:/does/not/exist", None])
async def test_a_secret_that_is_not_there_is_named_by_its_reference(reference: str | None) -> None:
    with pytest.raises(Missing) as raised:
        await resolve(kind="bearer", secret=reference)
    assert str(raised.value) == str(reference)


@pytest.mark.parametrize(
    "auth",
    [
        {"kind": "basic", "secret": "env:KEY"},
        {"kind": "jwt-hs256", "secret": "env:KEY"},
        {"kind": "bearer", "secret": "env:LINES"},
        {"kind": "magic", "secret": "env:KEY"},
    ],
)
async def test_what_cannot_be_used_is_said_without_its_value(auth: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as raised:
        await resolve(**auth)
    assert "s3cret" not in str(raised.value) and "first" not in str(raised.value)


async def test_secrets_are_blanked_wherever_they_come_back() -> None:
    found = await resolve(kind="basic", id="env:ID", secret="env:KEY")
    coded = found.value.removeprefix("Basic ")
    told = f'{{"detail": "bad key s3cret-key, sent as {coded}", "by": "account"}}'
    assert found.hide(told.encode()) == (
        b'{"detail": "bad key [secret], sent as [secret]", "by": "account"}'
    )
    slashes = Credential("x", "x", ("ab/cd/ef",))
    assert slashes.hide(rb'{"k": "ab\/cd\/ef"}') == b'{"k": "[secret]"}'


def test_a_secret_of_a_letter_is_not_searched_for() -> None:
    assert Credential("x", "x", ("a",)).hide(b"a banana") == b"a banana"
