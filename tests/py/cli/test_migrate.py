"""`aivedio migrate` brings any database to this version, whatever happened to earlier runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from edge.cli import migrate, tree
from tests.py.support.clusters import VERSIONS, Cluster, Run
from tests.py.support.waiting import eventually

# What a killed run was doing, by the session that it made wait: how many migrations are there
# already, and what another transaction holds.
KILLED_WHILE = {
    "it made the first role": (0, "create role aivedio_webhook"),
    "it made a table": (3, "create table aivedio.generation_tasks ()"),
    "it noted a migration": (3, "lock table aivedio.schema_migrations in share mode"),
    "it installed pgmq": (99, "create schema pgmq"),
    "it replaced functions": (99, "lock table pg_catalog.pg_proc in exclusive mode"),
    "it defined providers": (99, "lock table aivedio.providers in exclusive mode"),
}

OBJECTS = """
select format('%s %s.%s', relation.relkind, space.nspname, relation.relname)
from pg_class as relation join pg_namespace as space on space.oid = relation.relnamespace
where space.nspname in ('aivedio', 'pgmq') and relation.relkind in ('r', 'p', 'i', 'I', 'S', 'c')
union all
select format('%s owned by %s', routine.oid::regprocedure, routine.proowner::regrole)
from pg_proc as routine join pg_namespace as space on space.oid = routine.pronamespace
where space.nspname in ('aivedio', 'pgmq')
union all
select format('migration %s %s', version, sha256)
from aivedio.schema_migrations join aivedio.schema_checksums using (version)
"""


@dataclass(frozen=True, slots=True)
class Fresh:
    """An empty database, and a login that may do no more than our documentation asks for."""

    cluster: Cluster
    superuser: str
    login: str


@pytest.fixture(scope="session")
def private_cluster(run: Run) -> Callable[[int], Cluster]:
    """Return a function that starts a cluster in which no aivedio role exists, once a version."""
    started: dict[int, Cluster] = {}

    def start(version: int) -> Cluster:
        if version not in started:
            started[version] = run.start_cluster(f"m{version}-{uuid.uuid4().hex[:6]}", version)
        return started[version]

    return start


@pytest.fixture
def fresh(private_cluster: Callable[[int], Cluster], pg_version: int) -> Iterator[Fresh]:
    cluster = private_cluster(pg_version)
    name = f"d_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(cluster.conninfo(), autocommit=True) as admin:
        admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        if not admin.execute("select from pg_roles where rolname = 'plain'").rowcount:
            admin.execute("create role plain login createrole")
        admin.execute(sql.SQL("grant create on database {} to plain").format(sql.Identifier(name)))
    superuser = cluster.conninfo(name)
    yield Fresh(cluster, superuser, superuser.replace("postgres@", "plain@", 1))
    cluster.drop_database(name)
    with psycopg.connect(cluster.conninfo(), autocommit=True) as admin:
        for role in _aivedio_roles(admin):
            admin.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(role)))


def run_migrate(conninfo: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "edge.cli.app", "migrate", *arguments],
        env={**os.environ, "AIVEDIO_DATABASE_URL": conninfo},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(started: subprocess.Popen[str]) -> str:
    output, _ = started.communicate(timeout=120)
    assert started.returncode == 0, output
    return output


def objects(conninfo: str) -> list[str]:
    with psycopg.connect(conninfo) as session:
        return sorted(str(row[0]) for row in session.execute(OBJECTS).fetchall())


def copied_tree(place: Path, migrations: int = 99) -> tree.Tree:
    """Copy db/ so that a test may change it, with only the first few migrations."""
    shutil.copytree(tree.find().root, place / "db")
    copy = tree.Tree(place / "db")
    for migration in copy.migrations[migrations:]:
        migration.path.unlink()
    return tree.Tree(place / "db")


def migrate_to(conninfo: str, part: tree.Tree) -> None:
    migrate.migrate(conninfo, lambda _line: None, tree=part)


@pytest.mark.both_versions
def test_a_role_that_is_no_superuser_migrates_an_empty_database(fresh: Fresh) -> None:
    finish(run_migrate(fresh.login))
    with psycopg.connect(fresh.superuser) as session:
        applied = session.execute("select count(*) from aivedio.schema_migrations").fetchone()
        strangers = session.execute(
            "select oid::regprocedure from pg_proc where pronamespace in "
            "('aivedio'::regnamespace, 'pgmq'::regnamespace) "
            "and proowner <> 'aivedio_owner'::regrole"
        ).fetchall()
        queues = session.execute("select count(*) from pgmq.meta").fetchone()
        owner = session.execute(
            "select rolsuper or rolcanlogin or rolcreaterole from pg_roles "
            "where rolname = 'aivedio_owner'"
        ).fetchone()
    assert applied == (len(tree.find().migrations),)
    assert strangers == []
    assert queues is not None and queues[0] > 0
    assert owner == (False,)


@pytest.mark.both_versions
def test_whoever_migrated_may_act_as_every_role(fresh: Fresh) -> None:
    finish(run_migrate(fresh.login))
    with psycopg.connect(fresh.login, autocommit=True) as session:
        for role in _aivedio_roles(session):
            session.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
            session.execute("reset role")


@pytest.mark.both_versions
def test_a_second_database_of_the_cluster_shares_the_roles(fresh: Fresh) -> None:
    finish(run_migrate(fresh.login))
    cluster = fresh.cluster
    with psycopg.connect(cluster.conninfo(), autocommit=True) as admin:
        admin.execute("create database second")
        admin.execute("grant create on database second to plain")
    try:
        finish(run_migrate(cluster.conninfo("second").replace("postgres@", "plain@", 1)))
    finally:
        cluster.drop_database("second")


@pytest.mark.both_versions
def test_two_databases_of_a_cluster_are_migrated_at_once(fresh: Fresh) -> None:
    cluster = fresh.cluster
    with psycopg.connect(cluster.conninfo(), autocommit=True) as admin:
        admin.execute("create database twin")
        admin.execute("grant create on database twin to plain")
    try:
        twins = [
            run_migrate(fresh.login),
            run_migrate(cluster.conninfo("twin").replace("postgres@", "plain@", 1)),
        ]
        for twin in twins:
            finish(twin)
    finally:
        cluster.drop_database("twin")


def test_a_server_is_reached_over_tcp_with_an_awkward_password(fresh: Fresh) -> None:
    password = "a/b:c@d e%?&"
    with psycopg.connect(fresh.superuser, autocommit=True) as admin:
        admin.execute(sql.SQL("alter role plain password {}").format(sql.Literal(password)))
        name = admin.info.dbname
    url = fresh.cluster.url(name).replace("postgres@", f"plain:{quote(password, safe='')}@", 1)
    finish(run_migrate(url))


@pytest.mark.both_versions
def test_a_repeated_run_changes_nothing(fresh: Fresh) -> None:
    finish(run_migrate(fresh.login))
    before = objects(fresh.superuser)
    finish(run_migrate(fresh.login))
    assert objects(fresh.superuser) == before


@pytest.mark.both_versions
def test_two_runs_at_once_do_everything_once(fresh: Fresh) -> None:
    first, second = run_migrate(fresh.login), run_migrate(fresh.login)
    said = finish(first) + finish(second)
    for migration in tree.find().migrations:
        assert said.count(f"Applied: {migration.path.name}") == 1
    assert said.count("Installed pgmq") == 1


@pytest.mark.both_versions
@pytest.mark.parametrize("moment", KILLED_WHILE)
def test_the_next_run_finishes_what_a_killed_one_began_while(
    moment: str, fresh: Fresh, tmp_path: Path
) -> None:
    count, hold = KILLED_WHILE[moment]
    if count:
        part = copied_tree(tmp_path, count)
        apply_migrations_only(fresh.login, part)

    with psycopg.connect(fresh.superuser) as blocker:
        blocker.execute(hold.encode())
        killed = run_migrate(fresh.login)
        eventually(lambda: waits_for(fresh, blocker), 30.0, f"the run waits while {moment}")
        children = children_of(killed.pid)
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=10)
        eventually(lambda: not [pid for pid in children if alive(pid)], 5.0, "dbmate is gone")
        blocker.rollback()

    finish(run_migrate(fresh.login))
    assert objects(fresh.superuser) == reference_objects(fresh.cluster)


def apply_migrations_only(conninfo: str, part: tree.Tree) -> None:
    """Leave a database as a run does that is killed before it reaches pgmq."""
    from edge.cli import dbmate

    with psycopg.connect(conninfo, autocommit=True) as session:
        migrate._note_checksums(session, part)
        dbmate.apply(session, part.migrations_folder)


def waits_for(fresh: Fresh, blocker: psycopg.Connection[tuple[object, ...]]) -> bool:
    with psycopg.connect(fresh.superuser, autocommit=True) as watcher:
        return (
            watcher.execute(
                "select from pg_stat_activity where application_name like 'aivedio%%' "
                "and %s = any (pg_blocking_pids(pid))",
                [blocker.info.backend_pid],
            ).fetchone()
            is not None
        )


@cache
def reference_objects(cluster: Cluster) -> list[str]:
    """Return what an undisturbed run makes, on the same server."""
    with psycopg.connect(cluster.conninfo(), autocommit=True) as admin:
        admin.execute("create database reference")
        admin.execute("grant create on database reference to plain")
    try:
        finish(run_migrate(cluster.conninfo("reference").replace("postgres@", "plain@", 1)))
        return objects(cluster.conninfo("reference"))
    finally:
        cluster.drop_database("reference")


def test_a_changed_migration_is_refused(fresh: Fresh, tmp_path: Path) -> None:
    part = copied_tree(tmp_path)
    migrate_to(fresh.login, part)
    changed = part.migrations[2].path
    changed.write_text(changed.read_text() + "\n-- afterthought\n")
    with pytest.raises(migrate.CannotMigrate, match=f"{changed.name} changed"):
        migrate_to(fresh.login, tree.Tree(part.root))


def test_a_migration_may_change_before_it_was_applied(fresh: Fresh, tmp_path: Path) -> None:
    with psycopg.connect(fresh.superuser) as blocker:
        blocker.execute("create role aivedio_webhook")
        killed = run_migrate(fresh.login)
        eventually(lambda: waits_for(fresh, blocker), 30.0, "the run waits")
        killed.kill()
        killed.communicate(timeout=10)
        blocker.rollback()
    part = copied_tree(tmp_path)
    first = part.migrations[0].path
    first.write_text(first.read_text() + "\n-- better\n")
    migrate_to(fresh.login, tree.Tree(part.root))


def test_a_database_that_is_newer_than_the_tree_is_refused(fresh: Fresh, tmp_path: Path) -> None:
    migrate_to(fresh.login, tree.find())
    older = copied_tree(tmp_path, migrations=2)
    with pytest.raises(migrate.CannotMigrate, match=r"newer than this version.*has migration 0003"):
        migrate_to(fresh.login, older)


def test_a_failing_function_file_is_named_with_its_line_and_changes_nothing(
    fresh: Fresh, tmp_path: Path
) -> None:
    migrate_to(fresh.login, tree.find())
    before = objects(fresh.superuser)
    part = copied_tree(tmp_path)
    (part.root / "functions" / "00_base" / "aaa.sql").write_text(
        "create function aivedio.aaa() returns integer language sql as 'select 1';"
    )
    (part.root / "functions" / "99_broken.sql").write_text("select 1;\n\nselect nonsense;\n")
    with pytest.raises(migrate.CannotMigrate, match=r"db/functions/99_broken.sql:3: .*nonsense"):
        migrate_to(fresh.login, tree.Tree(part.root))
    assert objects(fresh.superuser) == before


def test_waiting_for_the_lock_is_bounded_and_names_the_holder(fresh: Fresh) -> None:
    with psycopg.connect(fresh.login, autocommit=True) as holder:
        holder.execute("select pg_advisory_lock(%s)", [migrate.LOCK])
        waiting = run_migrate(fresh.login, "--lock-timeout=0.5")
        output, _ = waiting.communicate(timeout=30)
        assert waiting.returncode == 1
        assert f"process {holder.info.backend_pid} of user plain" in output


def test_a_database_in_another_encoding_is_refused(
    private_cluster: Callable[[int], Cluster],
) -> None:
    cluster = private_cluster(VERSIONS[-1])
    with psycopg.connect(cluster.conninfo(), autocommit=True) as admin:
        admin.execute(
            "create database latin encoding 'LATIN1' template template0 "
            "locale_provider libc locale 'C'"
        )
    try:
        with pytest.raises(migrate.CannotMigrate, match="UTF8"):
            migrate_to(cluster.conninfo("latin"), tree.find())
    finally:
        cluster.drop_database("latin")


def _aivedio_roles(session: psycopg.Connection[tuple[object, ...]]) -> list[str]:
    rows = session.execute("select rolname from pg_roles where rolname like 'aivedio\\_%'")
    return [str(row[0]) for row in rows.fetchall()]


def children_of(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
