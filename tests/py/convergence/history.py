"""
One history of some tasks, lived by the database and by the model at the same time.

Each method does one thing to both, compares the answers, and then every row. The database's side
runs in one transaction that is never committed: a history costs no clean-up and sees nothing of
others. Time stands still until `advance`.
"""

from __future__ import annotations

from typing import Any

from psycopg.types.json import Jsonb

from tests.py.convergence.lockstep import TENANT, USER
from tests.py.convergence.rules import Refused
from tests.py.convergence.talks import Talks
from tests.py.convergence.things import (
    LIFE,
    Attempt,
    Case,
    Operation,
    Project,
    Provider,
    Task,
)


class History(Talks):
    """The database and the model in step."""

    # Commands

    def create(
        self,
        project: Project,
        provider: Provider,
        prompt: str,
        key: str | None = None,
        *,
        external: bool = False,
    ) -> Task | None:
        call = (
            "select verdict, task_id, attempt_id from aivedio."
            + ("create_external_task" if external else "create_task")
            + "(%s, %s, %s, %s, 'model-1', %s, %s, 'trace')",
            *(TENANT, project.id, USER, provider.name, Jsonb({"prompt": prompt}), key),
        )
        try:
            verdict, known = self.model.create(project, provider, prompt, key, external)
        except Refused as refused:
            self._refused(str(refused), *call)
            return None
        ((told, task_id, attempt_id),) = self._call(*call)
        if known is None:
            known = Task(task_id, project, provider, prompt, external)
            self.model.created(known, attempt_id, key, LIFE)
        assert (told, task_id) == (verdict, known.id)
        self.comparison.check()
        return known

    def cancel(self, task: Task) -> str:
        answer = self._call(
            "select verdict from aivedio.request_cancel(%s, %s, %s, %s)",
            *(TENANT, task.project.id, task.id, USER),
        )
        return self._agree("cancel", self.model.request_cancel(task), answer)

    def start(self, task: Task, key: str | None = None) -> str:
        verdict = self.model.start_attempt(task, key)
        answer = self._call(
            "select verdict, attempt_id from aivedio.start_attempt(%s, %s, %s, 'ops', 'why', %s)",
            *(TENANT, task.project.id, task.id, key),
        )
        if verdict == "applied":
            self.model.started(task, answer[0][1], key, LIFE)
        return self._agree("start", verdict, answer)

    def adopt(self, attempt: Attempt) -> str:
        task = attempt.task
        answer = self._call(
            "select verdict from aivedio.adopt_attempt(%s, %s, %s, %s, 'ops', 'why')",
            *(TENANT, task.project.id, task.id, attempt.id),
        )
        return self._agree("adopt", self.model.adopt(attempt), answer)

    def record(self, task: Task, job: str) -> str:
        answer = self._call(
            "select verdict from aivedio.record_submission(%s, %s, %s, %s, 'ops', 'why')",
            *(TENANT, task.project.id, task.id, job),
        )
        return self._agree("record", self.model.record(task.current, job), answer)

    def resolve(self, case: Case, resolution: str) -> str:
        ((case_id,),) = self._call(
            "select id from aivedio.reconciliation_cases"
            " where kind = %s and subject = %s and state = 'open'",
            *(case.kind, case.attempt and str(case.attempt.id)),
        )
        call = ("select aivedio.resolve_case(%s, %s, 'ops', 'why')", case_id, resolution)
        try:
            verdict = self.model.resolve(case, resolution)
        except Refused as refused:
            self._refused(str(refused), *call)
            return "refused"
        return self._agree("resolve", verdict, self._call(*call))

    # The bus, media and credits

    def tell_media(self, task: Task, version: int) -> str:
        attempt, told = self._message(task, version)
        ((answer,),) = self._call("select aivedio.open_media(%s)", told)
        return self._agree("media message", self.model.open_media(attempt), [(answer,)])

    def tell_billing(self, task: Task, version: int) -> str:
        attempt, told = self._message(task, version)
        ((answer,),) = self._call("select aivedio.book_credit(%s)", told)
        status = task.events[version - 1].status
        return self._agree("billing message", self.model.book(attempt, status), [(answer,)])

    def _message(self, task: Task, version: int) -> tuple[Attempt, Jsonb]:
        attempt = task.attempts[task.events[version - 1].attempt - 1]
        return attempt, Jsonb(self.comparison.messages[str(task.id), version])

    def claim_media(self) -> list[Operation]:
        told = {
            (attempt_id, kind): token
            for attempt_id, kind, token in self._call(
                "select attempt_id, operation_type, lease_token from aivedio.claim_media('w', 100)"
            )
        }
        handed = self.model.claim_media()
        assert told == {(o.attempt.id, o.kind): o.token for o in handed}
        self.comparison.check()
        return handed

    def watch(self) -> int:
        """Let upkeep look for jobs that are late and cannot be asked about."""
        ((told,),) = self._call("select aivedio._watch_attempts()")
        late = self.model.watch()
        assert told == late
        self.comparison.check()
        return late

    def purge(self) -> None:
        """Empty what has served its time: nothing that the model knows of."""
        self._call("select aivedio.upkeep('purge')")
        self.comparison.check()

    def give_up_media(self) -> int:
        ((told,),) = self._call("select (aivedio.upkeep('media') ->> 'result')::int")
        given_up = self.model.give_up_media()
        assert told == given_up
        self.comparison.check()
        return given_up

    def report(
        self,
        operation: Operation,
        *,
        token: int | None = None,
        progress: int | None = None,
        done: bool = False,
        asset: str | None = None,
        failed: bool = False,
        retry: bool = True,
    ) -> str:
        if failed:
            body: dict[str, Any] = {"failed": "codec", "retry": retry}
        elif done:
            body = {"done": {"asset_id": asset} if asset else {}}
        else:
            body = {"progress": progress}
        token = operation.token if token is None else token
        call = (
            "select (aivedio.report_media(operation.id, %s, %s)).verdict"
            " from aivedio.media_operations as operation"
            " where operation.attempt_id = %s and operation.operation_type = %s",
            *(token, Jsonb(body), operation.attempt.id, operation.kind),
        )
        try:
            verdict = self.model.report_media(
                operation,
                token,
                progress=progress,
                done=done,
                asset=asset,
                failed=failed,
                retry=retry,
            )
        except Refused as refused:
            self._refused(str(refused), *call)
            return "refused"
        return self._agree("report", verdict, self._call(*call))
