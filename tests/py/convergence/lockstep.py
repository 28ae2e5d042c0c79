"""What keeps the database and the model in step: one transaction, one clock, one comparison."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from tests.py.convergence.facts import Comparison
from tests.py.convergence.follow_ups import Model
from tests.py.convergence.payloads import PROVIDERS
from tests.py.convergence.things import (
    Project,
    Provider,
    Window,
)
from tests.py.support.sessions import Connection, Rows, rows

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
TENANT, USER = UUID(int=1), UUID(int=2)


class Lockstep:
    """The database and the model in step."""

    def __init__(self, session: Connection) -> None:
        self.session = session
        self.model = Model(START)
        self.projects = [Project(uuid4()), Project(uuid4(), policy="discard", step=1, pause=0.0)]
        self.providers = {
            name: Provider(name, corrects, cancels)
            for name, (corrects, cancels) in PROVIDERS.items()
        }
        self.events = 0
        session.rollback()
        rows(session, "set time zone 'UTC'")
        rows(session, "select setseed(0.5)")
        self._tell_time()
        lively = self.projects[1]
        rows(
            session,
            "insert into aivedio.project_settings values (%s, 'discard', 1, '0')",
            lively.id,
        )
        self.comparison = Comparison(session, self.model, [p.id for p in self.projects])

    def close(self) -> None:
        self.session.rollback()

    def _tell_time(self) -> None:
        now = self.model.now.isoformat()
        rows(self.session, "select set_config('aivedio.now', %s, true)", now)

    def _call(self, query: str, *arguments: object) -> Rows:
        """Run a statement; a refusal with a code of ours leaves the transaction as it was."""
        return rows(self.session, query, *arguments)

    def _refused(self, code: str, query: str, *arguments: object) -> None:
        rows(self.session, "savepoint before")
        try:
            rows(self.session, query, *arguments)
        except Exception as error:
            found = getattr(error, "sqlstate", None)
            rows(self.session, "rollback to before")
            assert found == code, f"{code} expected, {error!r}"
        else:
            raise AssertionError(f"{code} expected, nothing raised")
        self.comparison.check()

    def _agree(self, what: str, said: str, answered: Rows) -> str:
        (told, *_rest) = answered[0]
        assert told == said, f"{what}: the model answers {said}, the database {told}"
        self.model.visited[f"{what}: {said}"] += 1
        self.comparison.check()
        return said

    # Time and rules

    def advance(self, seconds: float) -> None:
        self.model.now += timedelta(seconds=seconds)
        self._tell_time()

    def advance_to(self, window: Window | None) -> None:
        """Go to just after something that is due, if it is still to come."""
        if window and window.high >= self.model.now:
            self.advance((window.high - self.model.now).total_seconds() + 0.001)

    def reprice(self, provider: Provider, price: int) -> None:
        provider.price = price
        self._call(
            "update aivedio.providers"
            " set effective = jsonb_set(effective, '{credits}', to_jsonb(%s::int)) where name = %s",
            price,
            provider.name,
        )
