"""Profiles: what is understood, what is not, and that the last good one stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from edge.intake.profiles import MAX_BODY, ProfileRow, Profiles, parse
from edge.intake.secrets import Secrets
from edge.intake.signatures import Key

SIGNED: dict[str, Any] = {
    "scheme": "standard-webhooks-v1",
    "secrets": [
        {"ref": "env:NEW", "version": "current"},
        {"ref": "env:OLD", "version": "previous"},
    ],
}


def row(webhook: dict[str, Any], revision: int = 1, provider: str = "p") -> ProfileRow:
    return ProfileRow(provider, webhook, False, revision)


def test_what_a_profile_leaves_out_has_a_safe_default() -> None:
    profile = parse(row(SIGNED))
    assert profile.verifier is not None and profile.verifier.covers_body
    assert profile.max_body == MAX_BODY
    assert profile.content_types == {"application/json"}
    assert profile.acknowledgement.status == 204


@pytest.mark.parametrize(
    "wrong",
    [
        {"scheme": "rot13"},
        {"scheme": None},
        {"signed": "no"},
        {"secrets": [{"ref": "env:X"}]},
        {"secrets": ["env:X"]},
        {"tolerance_s": 0},
        {"secret_format": "hex"},
        {"header_prefix": "a b"},
        {"scheme": "t-v1-hex"},
        {"scheme": "hmac-hex", "signature_header": "s"},
        {"scheme": "hmac-hex", "signature_header": "s", "content": "{boody}"},
        {"scheme": "hmac-hex", "signature_header": "s", "content": "no place"},
        {"scheme": "hmac-hex", "signature_header": "s", "content": "{timestamp}{body}"},
        {"scheme": "fal-ed25519"},
        {"scheme": "fal-ed25519", "jwks_url": "ftp://x/"},
        {"scheme": "fal-ed25519", "jwks_url": "https:///x"},
        {"challenge": 7},
        {"tolerance_s": "300"},
        {"max_body": 10**12},
        {"max_body": True},
        {"content_types": [1]},
        {"keep_headers": {"a": 1}, "content_types": [None]},
        {"acknowledge": {"status": 500}},
        {"acknowledge": {"status": 204, "body": "x"}},
    ],
)
def test_what_makes_no_sense_is_not_understood(wrong: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        parse(row({**SIGNED, **wrong}))


def test_a_profile_without_a_scheme_is_not_taken_for_unsigned() -> None:
    """W7: only `signed: false` makes callbacks hints."""
    with pytest.raises(KeyError):
        parse(row({"secrets": []}))
    assert parse(row({"signed": False})).verifier is None


def test_acknowledgements() -> None:
    def of(wanted: dict[str, Any]) -> tuple[int, bytes, str | None]:
        found = parse(row({**SIGNED, "acknowledge": wanted})).acknowledgement
        return found.status, found.body, found.content_type

    assert of({"status": 200}) == (200, b"", None)
    assert of({"status": 200, "body": "ok"}) == (200, b"ok", "text/plain; charset=utf-8")
    assert of({"status": 200, "body": {"a": 1}}) == (200, b'{"a":1}', "application/json")


async def test_only_keys_that_resolve_are_used() -> None:
    profile = parse(row(SIGNED))
    assert await profile.keys(Secrets({})) == []
    assert await profile.keys(Secrets({"NEW": "not base64!"})) == []
    assert await profile.keys(Secrets({"OLD": "whsec_b2xk"})) == [Key("previous", b"old")]


def test_published_keys_come_over_https_unless_the_profile_is_local() -> None:
    webhook = {"scheme": "fal-ed25519", "jwks_url": "http://127.0.0.1:1/jwks.json"}
    with pytest.raises(ValueError):
        parse(row(webhook))
    profile = parse(ProfileRow("p", webhook, True, 1))
    assert profile.published is not None and profile.published.local
    assert parse(row(SIGNED)).published is None


def test_the_header_of_the_event_id_is_always_kept() -> None:
    profile = parse(row({**SIGNED, "event_id_header": "Webhook-Id", "keep_headers": ["X-Trace"]}))
    assert profile.keep_headers == ("x-trace", "webhook-id")


def test_the_last_good_profile_stays_until_a_better_one_comes(
    capfd: pytest.CaptureFixture[str],
) -> None:
    profiles = Profiles()
    assert not profiles.loaded
    profiles.replace([row(SIGNED, 1), row({"scheme": "?"}, 1, "never_good")])
    good = profiles.get("p")
    assert good is not None and profiles.loaded
    assert profiles.get("never_good") is None and profiles.is_broken("never_good")

    profiles.replace([row({"scheme": "?"}, 2)])
    assert profiles.get("p") is good

    profiles.replace([row({**SIGNED, "max_body": 5}, 3)])
    newer = profiles.get("p")
    assert newer is not None and newer.max_body == 5

    profiles.replace([])
    assert profiles.get("p") is None and not profiles.is_broken("p")


def test_the_edge_understands_every_profile_that_is_shipped(
    connect: Callable[..., psycopg.Connection[Any]],
) -> None:
    rows = connect().execute(
        "select provider, webhook, local, revision from aivedio.read_webhook_profiles()"
    )
    found = [parse(ProfileRow(*row)) for row in rows.fetchall()]
    assert "replicate" in {profile.provider for profile in found}
    assert all(profile.verifier is not None or not profile.secrets for profile in found)
