"""The whole way through one gateway: create by HTTP, follow by SSE, nothing missing."""

from __future__ import annotations

from tests.py.gateway.conftest import Gateway, Person


async def test_a_created_task_reaches_the_stream(gateway: Gateway, person: Person) -> None:
    (project,) = person.projects
    async with gateway.follow(project, person.bearer(), cursor=0) as reader:
        assert (await reader.next()).event == "ready"
        answer = await gateway.client.post(
            f"/projects/{project}/tasks",
            headers={**person.bearer(), "idempotency-key": "one"},
            json={"input": {"prompt": "a cat"}, "model": "some/model"},
        )
        assert answer.status_code == 201, answer.text
        task = answer.json()["task"]
        event = await reader.next(within=5.0)
        assert event.id == str(answer.json()["last_event_id"])
        assert reader.versions == {task["id"]: 1}
