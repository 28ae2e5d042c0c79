"""Who is let in, who is not, and what ends an open stream."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
import uuid
from typing import Any

import httpx
import jwt
import psycopg
import pytest

from edge.gateway.access import COOKIE
from edge.gateway.keys import Keys
from tests.py.gateway.conftest import SECRET, Gateway, Person, StartGateway, stream_token

ORIGIN = "https://aivedio.test"


def without_trace(answer: httpx.Response) -> bytes:
    body = answer.json()
    trace = body.pop("trace_id")
    assert answer.headers["x-request-id"] == trace
    assert trace.encode() in answer.content
    return answer.content.replace(trace.encode(), b"")


async def test_missing_and_foreign_look_the_same(gateway: Gateway, person: Person) -> None:
    """A4: byte for byte, but for the trace id; so nobody learns which projects and tasks exist."""
    (project,) = person.projects
    other = Person(projects=(uuid.uuid4(),))
    theirs = await gateway.create_task(other)
    mine = await gateway.create_task(person)
    foreign, missing = other.projects[0], uuid.uuid4()
    answers = []
    for path in (
        f"/projects/{foreign}/tasks",
        f"/projects/{missing}/tasks",
        f"/projects/{foreign}/events?after=1",
        f"/projects/{missing}/events?after=1",
        f"/projects/{foreign}/tasks/{theirs['task_id']}",
        f"/projects/{foreign}/tasks/{mine['task_id']}",
        f"/projects/{missing}/tasks/{theirs['task_id']}",
        f"/projects/{project}/tasks/{theirs['task_id']}",
        f"/projects/{project}/tasks/{uuid.uuid4()}",
        f"/projects/{project}/tasks/not-an-id",
        "/projects/not-an-id/tasks",
        "/projects/not-an-id/events",
        f"/projects/{project}/nothing",
        "/nothing",
    ):
        answers.append(await gateway.client.get(path, headers=person.bearer()))
    for path in (
        f"/projects/{foreign}/tasks/{theirs['task_id']}/cancel",
        f"/projects/{project}/tasks/{theirs['task_id']}/cancel",
        f"/projects/{missing}/tasks/{theirs['task_id']}/cancel",
    ):
        answers.append(await gateway.client.post(path, headers=person.bearer(), json={}))
    assert {answer.status_code for answer in answers} == {404}
    assert len({without_trace(answer) for answer in answers}) == 1
    names = [sorted(name for name in answer.headers if name != "date") for answer in answers]
    assert all(each == names[0] for each in names)


async def test_claims_of_another_tenants_project_do_not_open_it(gateway: Gateway) -> None:
    owner = Person(projects=(uuid.uuid4(),))
    await gateway.create_task(owner)
    thief = Person(projects=owner.projects)
    answer = await gateway.client.get(
        f"/projects/{owner.projects[0]}/tasks", headers=thief.bearer()
    )
    assert answer.status_code == 404


def forged(claims: dict[str, Any], header: dict[str, str], key: str = "") -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    unsigned = f"{part(header)}.{part(claims)}"
    return f"{unsigned}.{key}"


async def test_credentials_that_are_no_good(gateway: Gateway, person: Person) -> None:
    now = int(time.time())
    claims = jwt.decode(person.token(), SECRET, algorithms=["HS256"])
    tokens = [
        "",
        "x",
        "a.b.c",
        "é" * 10,
        "x" * 20_000,
        forged(claims, {"alg": "none", "typ": "JWT"}),
        jwt.encode(claims, "another secret that is as long as ours", algorithm="HS256"),
        jwt.encode(claims, SECRET + SECRET, algorithm="HS384"),
        person.token(exp=now - 60),
        person.token(iat=now + 600),
        person.token(sub="nobody"),
        person.token(sub=7),
        person.token(tenant=None),
        person.token(projects=["x"]),
        person.token(projects=3),
        *(
            jwt.encode({k: v for k, v in claims.items() if k != name}, SECRET, algorithm="HS256")
            for name in ("sub", "tenant", "sid", "iat", "exp")
        ),
    ]
    for path in (
        "/me",
        f"/projects/{person.projects[0]}/tasks",
        f"/projects/{uuid.uuid4()}/events",
    ):
        for token in tokens:
            answer = await gateway.client.get(
                path, headers={b"authorization": f"Bearer {token}".strip().encode()}
            )
            assert answer.status_code == 401, (path, token)
            assert answer.json()["code"] == "unauthenticated"
        assert (await gateway.client.get(path)).status_code == 401
        basic = {"authorization": "Basic eDp5", "cookie": f"{COOKIE}={person.token()}"}
        assert (await gateway.client.get(path, headers=basic)).status_code == 401


def test_a_short_secret_is_no_secret() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Keys(["short"])


async def test_members_need_no_claims_and_viewers_change_nothing(gateway: Gateway) -> None:
    project = uuid.uuid4()
    member = Person(projects=())
    viewer = Person(projects=(), tenant=member.tenant)
    path = f"/projects/{project}/tasks"
    task = {"input": {"prompt": "x"}}
    assert (await gateway.client.get(path, headers=member.bearer())).status_code == 404
    for person, role in ((member, "member"), (viewer, "viewer")):
        await gateway.sql(
            "select aivedio.add_member(%s, %s, %s, %s)", person.tenant, project, person.user, role
        )
        assert (await gateway.client.get(path, headers=person.bearer())).status_code == 200
    made = await gateway.client.post(path, headers=member.bearer(), json=task)
    refused = await gateway.client.post(path, headers=viewer.bearer(), json=task)
    assert (made.status_code, refused.status_code) == (201, 403)
    assert refused.json()["code"] == "forbidden"
    async with gateway.follow(project, viewer.bearer(), cursor=0) as reader:
        await reader.until(made.json()["last_event_id"])


async def test_a_stream_token_opens_one_stream_of_one_project(
    gateway: Gateway, person: Person
) -> None:
    (project,) = person.projects
    header = await stream_token(gateway, person)
    async with gateway.follow(project, {"authorization": f"Stream {header['token']}"}) as reader:
        assert (await reader.next()).event == "ready"
    query = await stream_token(gateway, person)
    async with gateway.follow(project, {}, query=f"?token={query['token']}") as reader:
        assert (await reader.next()).event == "ready"

    unused = await stream_token(gateway, person)
    for used in (header["token"], query["token"], "x", "", "é" * 40, secrets.token_urlsafe(32)):
        by_header = await gateway.client.get(
            f"/projects/{project}/events",
            headers={b"authorization": f"Stream {used}".strip().encode()},
        )
        by_query = await gateway.client.get(f"/projects/{project}/events", params={"token": used})
        assert (by_header.status_code, by_query.status_code) == (401, 401), used
    wrong_project = await gateway.client.get(
        f"/projects/{uuid.uuid4()}/events", headers={"authorization": f"Stream {unused['token']}"}
    )
    assert wrong_project.status_code == 401
    no_session = await gateway.client.get(
        "/me", headers={"authorization": f"Stream {unused['token']}"}
    )
    assert no_session.status_code == 401


async def test_a_stream_token_that_an_application_made(gateway: Gateway, person: Person) -> None:
    (project,) = person.projects
    token = secrets.token_urlsafe(32)
    await gateway.call(
        "issue_token",
        purpose="stream",
        token_hash=hashlib.sha256(token.encode()).digest(),
        tenant=person.tenant,
        project=project,
        user=person.user,
        session=person.session,
    )
    async with gateway.follow(project, {"authorization": f"Stream {token}"}) as reader:
        assert (await reader.next()).event == "ready"


async def test_a_stream_tokens_hash_is_all_that_is_stored(gateway: Gateway, person: Person) -> None:
    token = (await stream_token(gateway, person))["token"]
    rows = await gateway.sql(
        "select token_hash, one_time_tokens::text from aivedio.one_time_tokens"
    )
    assert [row[0] for row in rows] == [hashlib.sha256(token.encode()).digest()]
    assert token not in rows[0][1]


def cookie(person: Person, **more: str) -> dict[str, str]:
    return {"cookie": f"{COOKIE}={person.token()}", **more}


async def test_a_change_by_cookie_must_come_from_our_own_page(
    start_gateway: StartGateway, person: Person
) -> None:
    gateway = await start_gateway(public_url=ORIGIN)
    path = f"/projects/{person.projects[0]}/tasks"

    async def create(**headers: str) -> int:
        answer = await gateway.client.post(
            path, headers=cookie(person, **headers), json={"input": {}}
        )
        if answer.status_code == 403:
            assert answer.json()["code"] == "foreign_origin"
        return answer.status_code

    own_host = {"host": "other.name:8443", "origin": "https://other.name:8443"}
    assert await create(origin=ORIGIN) == 201
    assert await create(**own_host) == 201
    assert await create(**{"sec-fetch-site": "same-origin"}) == 201
    assert await create() == 403
    assert await create(origin="null") == 403
    assert await create(origin="https://evil.test") == 403
    assert await create(origin=ORIGIN + ".evil.test") == 403
    assert await create(origin="http://aivedio.test") == 403
    assert await create(origin="https://evil.test", **{"sec-fetch-site": "same-origin"}) == 403
    assert await create(**{"sec-fetch-site": "same-site"}) == 403
    for more in ("cancel", "retry"):
        answer = await gateway.client.post(
            f"{path}/{uuid.uuid4()}/{more}", headers=cookie(person), json={"reason": "x"}
        )
        assert answer.status_code == 403
    token = await gateway.client.post(
        f"/projects/{person.projects[0]}/stream-tokens", headers=cookie(person)
    )
    assert token.status_code == 403


async def test_a_stream_by_cookie_is_not_for_other_sites_pages(
    start_gateway: StartGateway, person: Person
) -> None:
    gateway = await start_gateway(public_url=ORIGIN)
    (project,) = person.projects
    for fine in ({}, {"origin": ORIGIN}, {"sec-fetch-site": "same-origin"}):
        async with gateway.follow(project, cookie(person, **fine)) as reader:
            assert (await reader.next()).event == "ready"
    for foreign in (
        {"origin": "https://evil.test"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        answer = await gateway.client.get(
            f"/projects/{project}/events", headers=cookie(person, **foreign)
        )
        assert answer.status_code == 403
    # A bearer token is no cookie: it is sent by who has it, wherever the page is from.
    async with gateway.follow(project, {**person.bearer(), "origin": "https://app.test"}) as reader:
        assert (await reader.next()).event == "ready"


async def login_link(gateway: Gateway, person: Person) -> str:
    token = secrets.token_urlsafe(32)
    await gateway.call(
        "issue_token",
        purpose="login",
        token_hash=hashlib.sha256(token.encode()).digest(),
        tenant=person.tenant,
        project=person.projects[0],
        user=person.user,
        session=person.session,
        claims=psycopg.types.json.Jsonb({"projects": [str(one) for one in person.projects]}),
    )
    return f"/login?token={token}"


async def test_a_login_link_sets_the_cookie_once(gateway: Gateway, person: Person) -> None:
    link = await login_link(gateway, person)
    answer = await gateway.client.get(link)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/?project={person.projects[0]}"
    assert answer.headers["cache-control"] == "no-store"
    attributes = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=lax", "path=/"} <= attributes
    assert "secure" not in attributes  # plain http on one private machine

    me = (await gateway.client.get("/me")).json()
    assert me["user"] == str(person.user)
    assert me["tenant"] == str(person.tenant)
    assert me["projects"] == [str(person.projects[0])]
    async with gateway.follow(person.projects[0], {}) as reader:
        assert (await reader.next()).event == "ready"

    # A reload of the link, by the browser that used it, leads to the page again.
    again = await gateway.client.get(link)
    assert (again.status_code, again.headers["location"]) == (303, answer.headers["location"])
    assert "set-cookie" not in again.headers
    async with httpx.AsyncClient(base_url=gateway.url, trust_env=False) as stranger:
        for other in (link, "/login", "/login?token=x"):
            assert (await stranger.get(other)).status_code == 401


async def test_the_cookie_is_secure_unless_local(
    start_gateway: StartGateway, person: Person
) -> None:
    gateway = await start_gateway(local=False)
    answer = await gateway.client.get(await login_link(gateway, person))
    assert "secure" in answer.headers["set-cookie"].lower()
