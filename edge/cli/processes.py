"""
Every process that `aivedio` can be: what it needs to know and how it is started.

Modules are imported when their process starts, so that `aivedio webhook` never loads the
gateway and one broken module stops only its own process.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edge.cli.settings import BadSettings, Settings, required
from edge.process import Main

if TYPE_CHECKING:
    from edge.gateway.keys import Keys

Build = Callable[[Settings], Main]

# A submission in flight waits for its host and for its answer, 30 s each where a profile says so.
# Cut off, it would be one of which nobody knows whether the provider took it.
_SUBMISSION_ENDS_WITHIN = 75.0

_DATABASE = ("database_url",)
_DATABASE_CALLBACK = ("database_url", "callback_url")
_DATABASE_REDIS = ("database_url", "redis_url")


@dataclass(frozen=True, slots=True)
class Process:
    """
    One sub-command that runs until it is told to stop.

    `winds_up` is how many seconds it may take after that to finish what it has begun.
    """

    name: str
    help: str
    needs: tuple[str, ...]
    build: Build
    hidden: bool = False
    winds_up: float = 10.0

    def main(self, settings: Settings) -> Main:
        """Return what `edge.process.run` runs; raises BadSettings when something is missing."""
        required(settings, *self.needs)
        return self.build(settings)


def worker_name() -> str:
    """Return a name for leases that tells an operator where a worker runs."""
    return f"{socket.gethostname()}:{os.getpid()}"


def split_listen(listen: str) -> tuple[str, int]:
    """Return host and port of a listen setting."""
    host, _, port = listen.rpartition(":")
    return host.strip("[]"), int(port)


def database_url(settings: Settings) -> str:
    """Return the database URL of settings that were checked to have one."""
    assert settings.database_url is not None
    return settings.database_url.get_secret_value()


def redis_url(settings: Settings) -> str:
    """Return the Redis URL of settings that were checked to have one."""
    assert settings.redis_url is not None
    return settings.redis_url.get_secret_value()


def _webhook(settings: Settings) -> Main:
    from edge.intake import webhook
    from edge.intake.tls import Certificate

    certificate = None
    if settings.webhook_tls_cert is not None and settings.webhook_tls_key is not None:
        try:
            certificate = Certificate(settings.webhook_tls_cert, settings.webhook_tls_key)
        except (OSError, ssl.SSLError) as error:
            raise BadSettings(
                "AIVEDIO_WEBHOOK_TLS_CERT and AIVEDIO_WEBHOOK_TLS_KEY cannot be used"
                f" ({type(error).__name__}): they name a PEM chain and its key, readable here."
            ) from None
    elif (settings.webhook_tls_cert or settings.webhook_tls_key) is not None:
        raise BadSettings("Set both AIVEDIO_WEBHOOK_TLS_CERT and AIVEDIO_WEBHOOK_TLS_KEY, or none.")
    return lambda stopping, ready: webhook.run(
        database_url=database_url(settings),
        listen=settings.webhook_listen,
        trusted_proxies=settings.proxies,
        local=settings.local,
        callback_url=settings.callback_url,
        certificate=certificate,
        stopping=stopping,
        ready=ready,
    )


def _inbox(settings: Settings) -> Main:
    from edge.intake import inbox

    return lambda stopping, ready: inbox.run(
        database_url=database_url(settings), stopping=stopping, ready=ready
    )


def _poll(settings: Settings) -> Main:
    from edge.intake import poll

    return lambda stopping, ready: poll.run(
        database_url=database_url(settings), worker=worker_name(), stopping=stopping, ready=ready
    )


def _submit(settings: Settings) -> Main:
    from edge.intake import submit

    assert settings.callback_url is not None
    callback_url = settings.callback_url
    return lambda stopping, ready: submit.run(
        database_url=database_url(settings),
        callback_url=callback_url,
        worker=worker_name(),
        stopping=stopping,
        ready=ready,
    )


def _relay(settings: Settings) -> Main:
    from relay import outbox

    return lambda stopping, ready: outbox.run(
        database_url=database_url(settings),
        rocketmq=settings.rocketmq,
        stopping=stopping,
        ready=ready,
    )


def _dispatch(settings: Settings) -> Main:
    from relay import dispatch

    return lambda stopping, ready: dispatch.run(
        database_url=database_url(settings),
        redis_url=redis_url(settings),
        rocketmq=settings.rocketmq,
        directed=settings.dispatch_mode == "directed",
        stopping=stopping,
        ready=ready,
    )


def _consume(settings: Settings) -> Main:
    from relay import consume

    if unknown := sorted(set(settings.consume_groups) - set(consume.FUNCTIONS)):
        raise BadSettings(
            f"There is no consumer for the group {', '.join(unknown)}: "
            f"use {' or '.join(sorted(consume.FUNCTIONS))}."
        )
    return lambda stopping, ready: consume.run(
        database_url=database_url(settings),
        groups=settings.consume_groups,
        rocketmq=settings.rocketmq,
        stopping=stopping,
        ready=ready,
    )


def _session_keys(settings: Settings) -> Keys:
    """Return what session tokens are checked with; raises BadSettings."""
    from edge.gateway import keys

    if not (settings.jwt_secret or settings.jwt_public_keys or settings.jwt_jwks_url):
        required(settings, "jwt_secret")
    if settings.jwt_secret_previous:
        required(settings, "jwt_secret")
    secrets = [one for one in (settings.jwt_secret, settings.jwt_secret_previous) if one]
    if settings.jwt_jwks_url and not settings.local:
        if not settings.jwt_jwks_url.startswith("https://"):
            raise BadSettings("AIVEDIO_JWT_JWKS_URL must be an https address.")
    try:
        return keys.Keys(
            [one.get_secret_value() for one in secrets],
            [keys.pem_file(path) for path in settings.jwt_public_keys],
            jwks_url=settings.jwt_jwks_url,
            issuer=settings.jwt_issuer,
            audience=settings.jwt_audience,
        )
    except ValueError as error:
        raise BadSettings(f"Session tokens cannot be checked: {error}.") from None


def _gateway(settings: Settings) -> Main:
    from edge.gateway import places, serve

    checked = _session_keys(settings)
    caps = places.Caps(
        process=settings.most_streams,
        tenant=settings.most_streams_of_tenant,
        user=settings.most_streams_of_user,
        device=settings.most_streams_of_device,
    )
    assert settings.public_url is not None
    public_url = settings.public_url
    host, port = split_listen(settings.gateway_listen)
    return lambda stopping, ready: serve.run(
        database_url=database_url(settings),
        redis_url=redis_url(settings),
        host=host,
        port=port,
        public_url=public_url,
        keys=checked,
        proxies=settings.proxies,
        local=settings.local,
        drain_seconds=settings.drain_seconds,
        directed=settings.dispatch_mode == "directed",
        caps=caps,
        stopping=stopping,
        ready=ready,
    )


def console_url(settings: Settings) -> str:
    """Return where operators reach their page; raises BadSettings where that is not known."""
    if settings.local and settings.console_url is None:
        return f"http://{settings.console_listen}"
    required(settings, "console_url")
    assert settings.console_url is not None
    return settings.console_url


def _console(settings: Settings) -> Main:
    from edge.console import serve

    checked = _session_keys(settings)
    url = console_url(settings)
    host, port = split_listen(settings.console_listen)
    return lambda stopping, ready: serve.run(
        database_url=database_url(settings),
        host=host,
        port=port,
        public_url=url,
        keys=checked,
        proxies=settings.proxies,
        secure_cookie=url.startswith("https://") or not settings.local,
        stopping=stopping,
        ready=ready,
    )


def _upkeep(settings: Settings) -> Main:
    from edge.operate import upkeep

    return lambda stopping, ready: upkeep.run(
        database_url(settings), stopping=stopping, ready=ready
    )


def _pretend_media(settings: Settings) -> Main:
    from edge.pretend import media

    return lambda stopping, ready: media.run(
        database_url=database_url(settings), worker=worker_name(), stopping=stopping, ready=ready
    )


def _pretend_provider(settings: Settings) -> Main:
    from edge.pretend import provider

    host, port = split_listen(os.environ.get("AIVEDIO_PRETEND_LISTEN", "127.0.0.1:8082"))
    return lambda stopping, ready: provider.run(
        host=host,
        port=port,
        token=os.environ.get("REPLICATE_API_TOKEN", ""),
        secret=os.environ.get("REPLICATE_WEBHOOK_SECRET", ""),
        speed=float(os.environ.get("AIVEDIO_PRETEND_SPEED", "1")),
        stopping=stopping,
        ready=ready,
    )


PROCESSES: dict[str, Process] = {
    process.name: process
    for process in (
        Process("webhook", "Take in the providers' callbacks.", _DATABASE, _webhook),
        Process("inbox", "Apply the callbacks that wait.", _DATABASE, _inbox),
        Process("poll", "Ask the providers how their jobs are.", _DATABASE, _poll),
        Process(
            "submit",
            "Hand new tasks to the providers.",
            _DATABASE_CALLBACK,
            _submit,
            winds_up=_SUBMISSION_ENDS_WITHIN,
        ),
        Process("relay", "Send events from the outbox to the bus.", _DATABASE, _relay),
        Process("dispatch", "Carry events from the bus to Redis.", _DATABASE_REDIS, _dispatch),
        Process("consume", "Do what media and billing want of events.", _DATABASE, _consume),
        Process(
            "gateway",
            "Show browsers their jobs, live.",
            ("database_url", "redis_url", "public_url"),
            _gateway,
        ),
        Process("console", "Show operators the pipeline, and let them act.", _DATABASE, _console),
        Process("upkeep", "Keep the database tidy.", _DATABASE, _upkeep),
        Process("pretend-media", "A media plane that pretends.", _DATABASE, _pretend_media, True),
        Process("pretend-provider", "A provider that pretends.", (), _pretend_provider, True),
    )
}
