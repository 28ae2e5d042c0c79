"""
Taking in callbacks (stage 10): bound, verify, store, answer.

A callback is verified over its raw bytes and stored by `aivedio.accept_callbacks`; it is answered
only after that commit, and interpreted later by the inbox process. Nothing else is served on this
port.

    the profile's answer (204)   stored now, or by an earlier delivery
    200  the word it sent        a registration challenge: nothing is stored
    401  no body       no key signed it, or not recently, whatever else is wrong with it
    403                it came over plain http
    404                no such provider, no such address
    408, 413, 415, 431 too slow, too large, the wrong type, too many headers
    429, 503           not stored; Retry-After says when to send it again

A callback that is signed, but unusable, is stored dead and answered like any other: sending it
again would not help. One whose body nobody signed is only a hint to poll, and needs a token that we
gave out.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from prometheus_client import Counter as Metric, Histogram
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from edge import logs
from edge.intake.accepting import Accepting, QueueFull, Received
from edge.intake.challenge import echo
from edge.intake.failures import Failures
from edge.intake.flood import Flood
from edge.intake.origin import Network, Origin, origin
from edge.intake.problems import problem
from edge.intake.profiles import Profile, Profiles
from edge.intake.signatures import Delivery, Failure, Verified
from edge.intake.verifying import Verifying
from edge.listener import log_failure

logger = logs.get(__name__)

# Beside the time that keys and storing may take, within the 10 s that providers wait.
BODY_SECONDS = 3.0
RETRY_AFTER = 5
# Each request may hold a body in memory while it comes in.
MAX_IN_FLIGHT = 1000
# One source with slow bodies must not have all of them.
MAX_IN_FLIGHT_PER_SOURCE = 250
MAX_TOKEN = 200
MAX_HEADER_KEPT = 512

ANSWERS = Metric("aivedio_callbacks_total", "Callbacks answered.", ["provider", "status"])
SECONDS = Histogram(
    "aivedio_callback_seconds",
    "Time from the head of a callback to its answer.",
    buckets=(0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
SKEW = Histogram(
    "aivedio_callback_age_seconds",
    "Our clock minus the signed timestamp of verified callbacks.",
    ["provider"],
    buckets=(-300, -60, -10, -1, 0, 1, 10, 60, 300),
)


class Refused(Exception):
    """A callback gets this answer and no row."""

    def __init__(self, response: Response, reason: str) -> None:
        super().__init__(reason)
        self.response = response
        self.reason = reason


class Webhook:
    """Takes in callbacks."""

    def __init__(
        self,
        *,
        profiles: Profiles,
        verifying: Verifying,
        accept: Accepting,
        refusals: Failures,
        flood: Flood,
        knows_token: Callable[[str, bytes], Awaitable[bool]],
        public_path: str = "",
        trusted_proxies: Sequence[Network] = (),
        local: bool = False,
        clock: Callable[[], float] = time.time,
        doubt: Callable[[], None] = lambda: None,
    ) -> None:
        self._profiles = profiles
        self._verifying = verifying
        self._accept = accept
        self._refusals = refusals
        self._flood = flood
        self._knows_token = knows_token
        # What a proxy in front of us takes off the path; some providers sign the whole of it.
        self._public_path = public_path
        self._trusted_proxies = trusted_proxies
        self._local = local
        self._clock = clock
        self._doubt = doubt
        self._in_flight = 0
        self._in_flight_of: Counter[str] = Counter()
        self._complained_at = -math.inf

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request as an ASGI application: the callback routes and nothing else."""
        # By hand, since there are two routes and every microsecond is one of all callbacks'. A
        # slash too many is no route: providers follow no redirects.
        top, *rest = scope["path"].removeprefix("/").split("/")
        response: Response
        if top != "callbacks" or len(rest) not in (1, 2) or not all(rest):
            response = problem(404, "not_found")
        elif scope["method"] != "POST":
            response = problem(405, "method_not_allowed", headers={"allow": "POST"})
        else:
            token = rest[1] if len(rest) == 2 else None
            response = await self._answer(Request(scope, receive), rest[0], token)
        await response(scope, receive, send)

    async def _answer(self, request: Request, provider: str, token: str | None) -> Response:
        """Take in one delivery and return what its sender hears."""
        began = time.perf_counter()
        trace_id = uuid.uuid4().hex
        known = self._profiles.get(provider) is not None
        self._in_flight += 1
        try:
            if self._in_flight > MAX_IN_FLIGHT:
                raise Refused(_last(_again(503, "unavailable", trace_id, RETRY_AFTER)), "full")
            came_from = origin(request, self._trusted_proxies)
            with self._place(came_from.source, trace_id):
                response = await self._receive(request, provider, token, came_from, trace_id)
        except Refused as refused:
            response = refused.response
            if known:
                self._refusals.add(provider, refused.reason)
        except Exception as error:
            # Not stored, as far as we know: the provider must send it again.
            if not isinstance(error, QueueFull):
                self._doubt()
            self._complain(provider, trace_id, error)
            response = _again(503, "unavailable", trace_id, RETRY_AFTER)
        finally:
            self._in_flight -= 1
        # Unknown names come from outside and would make a metric grow without end.
        ANSWERS.labels(provider if known else "unknown", response.status_code).inc()
        SECONDS.observe(time.perf_counter() - began)
        return response

    @contextmanager
    def _place(self, source: str, trace_id: str) -> Iterator[None]:
        """Take one of the places that a source has for requests in flight."""
        if self._in_flight_of[source] >= MAX_IN_FLIGHT_PER_SOURCE:
            raise Refused(_last(_again(503, "unavailable", trace_id, RETRY_AFTER)), "crowded")
        self._in_flight_of[source] += 1
        try:
            yield
        finally:
            self._in_flight_of[source] -= 1
            if not self._in_flight_of[source]:
                del self._in_flight_of[source]

    async def _receive(
        self,
        request: Request,
        provider: str,
        token: str | None,
        came_from: Origin,
        trace_id: str,
    ) -> Response:
        self._wait(self._flood.check(came_from.source), trace_id)
        profile = self._profile(provider, came_from.source, trace_id)
        if not (came_from.encrypted or self._local or profile.local):
            raise Refused(problem(403, "https_required", trace_id), "plain_http")
        if token is not None and len(token) > MAX_TOKEN:
            raise Refused(problem(404, "not_found", trace_id), "token")
        token_hash = hashlib.sha256(token.encode()).digest() if token else None
        _check_type(request, profile, trace_id)

        body = await self._body(request, profile, trace_id)
        if body is None:
            await self._hint(profile, token_hash, came_from.source, trace_id)
            raise Refused(_last(problem(413, "too_large", trace_id)), "too_large")
        verified = await self._verify(request, profile, body)
        if isinstance(verified, Failure):
            # Without a key nobody can be told from a guesser.
            if verified is not Failure.NO_KEY:
                self._flood.refused(came_from.source)
            raise Refused(Response(status_code=401), verified)
        if not _is_signed(profile, verified) and token_hash is None:
            raise Refused(problem(404, "not_found", trace_id), "token")
        if profile.challenge is not None and token_hash is not None:
            answer = echo(profile.challenge, body)
            if answer is not None:
                self._wait(self._flood.challenge(came_from.source), trace_id)
                if not await self._knows_token(provider, token_hash):
                    raise self._unknown_token(came_from.source, trace_id)
                return Response(answer, media_type="application/json")
        self._wait(
            self._flood.admit(came_from.source, provider, verified=verified is not None), trace_id
        )

        accepted = await self._accept.accept(
            received(request, profile, body, verified, token_hash, trace_id)
        )
        if accepted is None:
            raise self._unknown_token(came_from.source, trace_id)
        logger.debug(
            "callback stored",
            provider=provider,
            inbox_id=accepted.inbox_id,
            is_new=accepted.is_new,
            is_dead=accepted.is_dead,
            trace_id=trace_id,
        )
        return _acknowledge(profile)

    @staticmethod
    def _wait(seconds: float, trace_id: str) -> None:
        """Refuse what comes too often."""
        if seconds:
            raise Refused(_again(429, "too_many_requests", trace_id, seconds), "flood")

    def _unknown_token(self, source: str, trace_id: str) -> Refused:
        """Return the refusal of a token that nobody was given, and count it as a guess."""
        self._flood.refused(source)
        return Refused(problem(404, "not_found", trace_id), "token")

    def _complain(self, provider: str, trace_id: str, error: Exception) -> None:
        """Log that callbacks are not stored: once a second, for there may be thousands."""
        now = time.monotonic()
        if now >= self._complained_at + 1.0:
            self._complained_at = now
            log_failure("callback not stored", error, provider=provider, trace_id=trace_id)

    def _profile(self, provider: str, source: str, trace_id: str) -> Profile:
        profile = self._profiles.get(provider)
        if profile is not None:
            return profile
        if not self._profiles.loaded or self._profiles.is_broken(provider):
            raise Refused(_again(503, "unavailable", trace_id, RETRY_AFTER), "no_profile")
        self._flood.refused(source)
        raise Refused(problem(404, "not_found", trace_id), "unknown")

    async def _body(self, request: Request, profile: Profile, trace_id: str) -> bytes | None:
        """Return the raw body, or None if it is larger than the profile allows: it is not read."""
        announced = request.headers.get("content-length", "0")
        if not announced.isdigit() or int(announced) > profile.max_body:
            return None
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > profile.max_body:
                        return None
        except TimeoutError:
            raise Refused(_last(problem(408, "too_slow", trace_id)), "slow") from None
        except ClientDisconnect:
            raise Refused(Response(status_code=400), "disconnected") from None
        return bytes(body)

    async def _hint(
        self, profile: Profile, token_hash: bytes | None, source: str, trace_id: str
    ) -> None:
        """Have the attempt polled whose callback we refuse to read, if its token proves one."""
        if token_hash is None:
            return
        empty = hashlib.sha256(b"").digest()
        accepted = await self._accept.accept(
            Received(
                0, profile.provider, {}, None, empty, None, False, token_hash, trace_id, "too_large"
            )
        )
        if accepted is None:
            self._flood.refused(source)

    async def _verify(
        self, request: Request, profile: Profile, body: bytes
    ) -> Verified | Failure | None:
        """Return who signed, why nobody did, or None if the provider does not sign."""
        if profile.verifier is None:
            return None
        headers: dict[str, list[str]] = {}
        for name, value in request.headers.items():
            headers.setdefault(name, []).append(value)
        delivery = Delivery(
            body,
            headers,
            method=request.method,
            path=self._public_path + request.scope["raw_path"].decode("latin-1"),
            query=request.scope["query_string"].decode("latin-1"),
        )
        verified = await self._verifying.judge(profile, profile.verifier, delivery, self._clock())
        if isinstance(verified, Verified) and verified.age is not None:
            SKEW.labels(profile.provider).observe(verified.age)
        return verified


def _is_signed(profile: Profile, verified: Verified | None) -> bool:
    """Whether what a callback says is known to come from its provider."""
    return verified is not None and profile.verifier is not None and profile.verifier.covers_body


def received(
    request: Request,
    profile: Profile,
    body: bytes,
    verified: Verified | None,
    token_hash: bytes | None,
    trace_id: str,
) -> Received:
    """Return a delivery as the database takes it. A body that is no text is left out and named."""
    text: str | None = None
    error: str | None = None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        error = "not_utf8"
    if text is not None and "\0" in text:
        text, error = None, "not_json"
    return Received(
        ordinal=0,
        provider=profile.provider,
        headers={
            name: request.headers[name][:MAX_HEADER_KEPT]
            for name in profile.keep_headers
            if name in request.headers
        },
        body=text,
        body_hash=hashlib.sha256(body).digest(),
        signature_key_version=verified.version if verified else None,
        signed=_is_signed(profile, verified),
        token_hash=token_hash,
        trace_id=trace_id,
        error=error,
    )


def _check_type(request: Request, profile: Profile, trace_id: str) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if kind not in profile.content_types or encoding != "identity":
        raise Refused(_last(problem(415, "unsupported_type", trace_id)), "type")


def _acknowledge(profile: Profile) -> Response:
    wanted = profile.acknowledgement
    return Response(wanted.body, status_code=wanted.status, media_type=wanted.content_type)


def _again(status: int, code: str, trace_id: str, seconds: float) -> Response:
    return problem(status, code, trace_id, {"retry-after": str(max(1, math.ceil(seconds)))})


def _last(response: Response) -> Response:
    """End the connection with this answer: the rest of the body is not worth reading."""
    response.headers["connection"] = "close"
    return response
