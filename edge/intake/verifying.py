"""Finds the keys of a provider, wherever they are, and judges deliveries by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edge.intake.jwks import Jwks, Source
from edge.intake.profiles import Profile
from edge.intake.secrets import Secrets
from edge.intake.signatures import Delivery, Failure, Key, Verified, Verifier


class Verifying:
    """Judges by our secrets, or by the keys that a provider publishes."""

    def __init__(self, secrets: Secrets, jwks: Jwks) -> None:
        self._secrets = secrets
        self._jwks = jwks

    async def judge(
        self, profile: Profile, verifier: Verifier, delivery: Delivery, now: float
    ) -> Verified | Failure:
        """Return who signed a delivery, or why nobody did; `now` in Unix seconds."""
        if profile.published is None:
            return verifier.verify(delivery, await profile.keys(self._secrets), now)
        audience = await self._secrets.resolve(profile.audience) if profile.audience else None
        return await self._by_published(profile.published, audience, verifier, delivery, now)

    async def _by_published(
        self,
        source: Source,
        audience: str | None,
        verifier: Verifier,
        delivery: Delivery,
        now: float,
    ) -> Verified | Failure:
        def judged(keys: Sequence[Key]) -> Verified | Failure:
            meant = keys if audience is None else [replace(key, audience=audience) for key in keys]
            return verifier.verify(delivery, meant, now)

        keys, fetched_now = await self._jwks.keys(source)
        verdict = judged(keys)
        # One delivery waits for one fetch at most.
        if (
            fetched_now
            or isinstance(verdict, Verified)
            or not verifier.may_be_rotated(verdict, delivery, keys)
        ):
            return verdict
        renewed = await self._jwks.renewed(source)
        return verdict if renewed is None else judged(renewed)
