"""
Each profile, from a task to its end over a real socket: what arrives is what is documented.

Requests are claimed, sent and settled as the processes do it, with their roles.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import jwt
import orjson
import pytest

from edge import database as databases
from edge.database import Database
from edge.intake.calls import Calls
from edge.intake.profiles import ProfileRow, parse
from edge.intake.provider_http import ProviderHttp, ProviderRequest
from edge.intake.secrets import Secrets
from tests.py.intake import documented, documented_too
from tests.py.intake.documented import Conversation, Exchange
from tests.py.intake.jobs import Jobs
from tests.py.intake.server import Request, Server, Writer, answer, serving
from tests.py.support.waiting import eventually_async

CONVERSATIONS = documented.CONVERSATIONS + documented_too.CONVERSATIONS
CALLBACKS = "https://us.example"


@dataclass
class Provider:
    """Answers what is next in a conversation, and remembers what arrived."""

    answers: list[Exchange] = field(default_factory=list)

    async def behave(self, _: Request, writer: Writer) -> None:
        said = self.answers.pop(0)
        body = b"" if said.answer is None else orjson.dumps(said.answer)
        await answer(body, said.status)(_, writer)


@dataclass
class Talk:
    """One profile, pointed at a server of the test's own."""

    conversation: Conversation
    jobs: Jobs
    server: Server
    provider: Provider
    calls: dict[str, tuple[Database, Calls]]

    async def make(self, exchange: Exchange, name: str, **arguments: Any) -> None:
        """Claim one request, send it, settle its answer, and compare what arrived."""
        self.provider.answers.append(exchange)
        db, calls = self.calls[name]
        claim = {"poll": "claim_polls", "submit": "claim_submits", "cancel": "claim_cancels"}[name]

        async def claimed() -> list[ProviderRequest]:
            return await db.rows(ProviderRequest, claim, p_worker="w", p_limit=5, **arguments)

        (request,) = await eventually_async(claimed, what=f"a {name} to claim")
        await calls.start(request)
        assert self._arrived(self.server.requests[-1]) == self._expected(exchange)

    def _expected(self, exchange: Exchange) -> Any:
        headers = self.conversation.identity | exchange.headers
        if exchange.body is not None:
            headers = documented.JSON | headers
        return exchange.line, headers, exchange.body

    def _arrived(self, request: Request) -> Any:
        line = unquote(self._named(request.line.removesuffix(" HTTP/1.1")))
        sent = {"host", "accept", "accept-encoding", "connection", "user-agent", "content-length"}
        headers = {
            name: self._named(_readable(value))
            for name, value in request.headers.items()
            if name not in sent
        }
        return line, headers, orjson.loads(self._named(request.body.decode()) or "null")

    def _named(self, text: str) -> str:
        """Return `text` with the job's callback URL and id replaced by their names."""
        callback = rf"{CALLBACKS}/callbacks/{self.conversation.provider}/[A-Za-z0-9_-]{{43}}"
        encoded = rf"{quote(CALLBACKS, safe='')}%2Fcallbacks%2F[a-z_]+%2F[A-Za-z0-9_-]{{43}}"
        text = re.sub(f"{callback}|{encoded}", documented.CALLBACK, text)
        for (client,) in self.jobs.attempts("client_request_id"):
            text = text.replace(client, documented.CLIENT)
        return text


def _readable(value: str) -> str:
    """Return a header's value; of a signed token only whose it is, once its signature holds."""
    token = value.removeprefix("Bearer ")
    if token.count(".") != 2:
        return value
    secret = documented.KLING_TOKEN["KLING_SECRET_KEY"]
    claims = jwt.decode(token, secret, algorithms=["HS256"], options={"require": ["exp", "nbf"]})
    return f"Bearer <token of {claims['iss']}>"


@asynccontextmanager
async def talking(conversation: Conversation, database: str, jobs: Jobs) -> AsyncIterator[Talk]:
    provider = Provider()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(provider.behave))
        http = await stack.enter_async_context(
            ProviderHttp(Secrets(conversation.secrets), reuse=False)
        )
        calls = {}
        for name in ("submit", "cancel", "poll"):
            role = "aivedio_poll" if name == "poll" else "aivedio_submit"
            db = await stack.enter_async_context(
                databases.connect(database, role=role, max_size=1, statement_timeout=10.0)
            )
            calls[name] = (db, Calls(db, http, name, slots=1, settle_within=10.0))
        profile = {"base_url": server.url + conversation.base, "local": True}
        jobs.session.execute(
            "select aivedio.override_provider(%s, %s, 'a test', 'a server of its own')",
            [conversation.provider, orjson.dumps(profile).decode()],
        )
        talk = Talk(conversation, jobs, server, provider, calls)
        jobs.session.execute(
            "select aivedio.create_task(%s, %s, gen_random_uuid(), %s, %s, %s)",
            [
                jobs.tenant,
                jobs.project,
                conversation.provider,
                conversation.model,
                orjson.dumps(conversation.input).decode(),
            ],
        )
        await talk.make(conversation.submit, "submit", p_callback_base=CALLBACKS)
        yield talk


def names(conversations: list[Conversation]) -> list[str]:
    return [f"{one.provider}:{one.model}" for one in conversations]


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=names(CONVERSATIONS))
async def test_a_job_from_its_submission_to_its_end(
    conversation: Conversation, database: str, jobs: Jobs
) -> None:
    async with talking(conversation, database, jobs) as talk:
        assert jobs.statuses() == ["submitted"]
        for exchange in conversation.polls:
            if jobs.attempts("poll_answer is null") == [(True,)]:
                jobs.poll_now()
            await talk.make(exchange, "poll")
        if conversation.outputs:
            assert jobs.statuses() == ["provider_succeeded"]
        rows = jobs.session.execute("select url from aivedio.attempt_outputs order by ordinal")
        base = talk.server.url + conversation.base
        assert [url.replace(base, "BASE") for (url,) in rows.fetchall()] == conversation.outputs


CANCELABLE = [one for one in CONVERSATIONS if one.cancel is not None]


@pytest.mark.parametrize("conversation", CANCELABLE, ids=names(CANCELABLE))
async def test_a_job_that_is_not_wanted_any_more(
    conversation: Conversation, database: str, jobs: Jobs
) -> None:
    assert conversation.cancel is not None
    async with talking(conversation, database, jobs) as talk:
        jobs.poll_now()
        await talk.make(conversation.polls[0], "poll")
        jobs.session.execute(
            "select aivedio.request_cancel(task.tenant_id, task.project_id, task.id, task.user_id)"
            " from aivedio.generation_tasks as task"
        )
        await talk.make(conversation.cancel, "cancel")
        assert jobs.attempts("cancel_state") == [("accepted",)]


async def test_every_shipped_profile_has_its_conversation(jobs: Jobs) -> None:
    rows = jobs.session.execute("select name from aivedio.providers").fetchall()
    spoken = {one.provider for one in CONVERSATIONS}
    assert {name for (name,) in rows} == spoken | {"replicate"}


async def test_the_webhook_edge_understands_every_shipped_profile(database: str) -> None:
    async with databases.connect(
        database, role="aivedio_webhook", max_size=1, statement_timeout=10.0
    ) as db:
        rows = await db.rows(ProfileRow, "read_webhook_profiles")
    called = {one.provider for one in map(parse, rows)}
    assert called | {"runway", "dashscope"} == {one.provider for one in CONVERSATIONS} | {
        "replicate"
    }
