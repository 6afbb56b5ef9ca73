"""Each process of docker-compose.yml works with its own login."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2
import psycopg
import pytest
import yaml  # type: ignore[import-untyped]

from tests.drivers.databases import OwnServer
from tests.drivers.http.servers import served
from tests.drivers.processes import children, push_agents
from tests.drivers.processes.children import ROOT, Child, Conn, value
from tests.drivers.webhooks import Receiver
from treadle.db.install.migrate import migrate

pytestmark = pytest.mark.requirement("B10")

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
LOGINS: str = COMPOSE["configs"]["logins"]["content"]
ROLES = {login: role for role, login in re.findall(r"^grant (\w+) to (\w+);$", LOGINS, re.M)}
Start = Callable[..., Child]
until = partial(children.until, within=30)

# What there is to do for a process, and the question whether it was done.
CHORES = {
    "worker": (
        """
        select treadle.define_type('hello');
        select treadle.enqueue_task('default', 'hello', '{"name": "Ada"}');
        """,
        "select status = 'completed' from treadle.tasks",
    ),
    "reaper": (
        """
        select treadle.register_agent('a');
        select treadle.enqueue_task('default', 'code');
        select * from treadle.claim_tasks('a');
        update treadle.tasks set lease_until = now() - interval '1 day';
        """,
        "select status = 'retrying' from treadle.tasks",
    ),
    "promoter": (
        """
        select treadle.enqueue_task('default', 'code', p_delay_s => 60);
        update treadle.tasks set run_at = now() - interval '1 minute';
        """,
        "select status = 'ready' from treadle.tasks",
    ),
    "scheduler": (
        """
        select treadle.define_schedule('s', '{"cron": "@daily", "task": {"type": "code"}}');
        update treadle.schedules set next_at = now() - interval '1 minute';
        """,
        "select count(*) = 1 from treadle.tasks",
    ),
    "pruner": (
        """
        select treadle.define_queue('default', '{"keep_completed_s": 0}');
        select treadle.register_agent('a');
        select treadle.enqueue_task('default', 'code');
        select treadle.complete_tasks(array_agg(id), array_agg(claim_token))
        from treadle.claim_tasks('a');
        """,
        "select count(*) = 0 from treadle.tasks",
    ),
}


def login_of(service: str) -> str:
    """The login of a process."""
    return str(urlsplit(SERVICES[service]["environment"]["TREADLE_DATABASE_URL"]).username)


@pytest.fixture
def url_of(
    database_url: str, sync_conn: psycopg.Connection[tuple[Any, ...]]
) -> Iterator[Callable[[str], str]]:
    """The database for a login that has the role of a process, and no other."""
    made: list[str] = []

    def make(service: str) -> str:
        name = f"{sync_conn.info.dbname}_{service}"
        sync_conn.execute(f"create role {name} login".encode())
        made.append(name)
        sync_conn.execute(f"grant {ROLES[login_of(service)]} to {name}".encode())
        return f"{database_url}{'&' if '?' in database_url else '?'}user={name}"

    yield make
    for name in made:
        sync_conn.execute(f"drop role {name}".encode())


@pytest.fixture
def start(url_of: Callable[[str], str], tmp_path: Path) -> Iterator[Start]:
    """Start a process by its command in docker-compose.yml."""
    started: list[Child] = []

    def run(service: str, **settings: object) -> Child:
        health = str(tmp_path / service)
        words = [
            health if word == "/run/treadle/health" else word
            for word in SERVICES[service]["command"]
        ]
        log = tmp_path / f"{service}.log"
        child = Child(words, log=log, database_url=url_of(service), **settings)
        started.append(child)
        return child

    yield run
    for child in started:
        child.end()


def troubles(child: Child) -> list[children.Line]:
    return [line for line in child.lines() if line["level"] not in ("debug", "info")]


@pytest.mark.parametrize("service", CHORES)
async def test_a_process_does_its_work_with_its_login(
    conn: Conn, start: Start, service: str
) -> None:
    todo, done = CHORES[service]
    await conn.execute(todo.encode())

    child = start(service, prune_every_s=0.2, service_s=0.2)

    await until(lambda: value(conn, done))
    assert troubles(child) == []


async def test_the_dispatcher_does_its_work_with_its_login(
    conn: Conn, start: Start, agents: push_agents.Agents
) -> None:
    agents("a")
    queue_ids = await push_agents.submit(conn, 2)

    child = start("dispatcher", **push_agents.PATIENT)

    await until(lambda: push_agents.ended(conn, *queue_ids))
    assert troubles(child) == []


async def test_the_notifier_does_its_work_with_its_login(conn: Conn, start: Start) -> None:
    with Receiver() as receiver:
        settings = {"url": receiver.url("w"), "kinds": ["test.*"], "allow_private": True}
        await conn.execute("select treadle.define_webhook('w', %s)", (json.dumps(settings),))
        await conn.execute("select treadle.emit_event('test.rung', '{}')")

        child = start("notifier", webhook_private=1, service_s=0.1)

        await until(lambda: receiver.got["/w"])
    assert troubles(child) == []


async def test_the_harness_does_its_work_with_its_login(conn: Conn, start: Start) -> None:
    agent, token = "http://agent.test", uuid4()
    await value(conn, "select id from treadle.enqueue_harness_task(%s, '{}')", agent)
    claim = "select id from treadle.claim_harness_task(%s, %s)"
    task_id = await value(conn, claim, agent, token)
    decide = "select treadle.complete_harness_task(%s, %s, '{\"actions\": []}')"
    await value(conn, decide, task_id, token)

    child = start("harness", service_s=0.2)

    line = await child.logged("decision.received")
    assert line["task_id"] == str(task_id)
    assert troubles(child) == []


def test_the_server_and_the_commands_do_their_work_with_their_login(
    url_of: Callable[[str], str], tmp_path: Path
) -> None:
    assert login_of("cli") == login_of("server")
    url = url_of("server")
    command = [*(sys.executable, "-m", "treadle"), *("tokens", "create", "me", "--scope", "admin")]
    token = subprocess.run(
        command, env={**os.environ, "TREADLE_DATABASE_URL": url}, cwd=ROOT, text=True, check=True,
        capture_output=True,
    ).stdout.strip()  # fmt: skip

    with served(url, tmp_path / "server.log") as running:
        headers = {"Authorization": f"Bearer {token}"}
        with httpx2.Client(base_url=running.url, headers=headers, timeout=30) as http:
            item = http.post("/work", json={"type": "bug_fix", "description": "Fix it"}).json()
            answers = [
                http.get("/health"),
                http.patch(f"/work/{item['id']}", json={"notes": "x"}),
                http.get(f"/work/{item['id']}"),
                http.post("/v1/queues/default/pause"),
            ]
    assert [answer.status_code for answer in answers] == [200] * 4, answers


def test_the_logins_have_one_role_each_and_the_passwords_that_are_set_last(
    own_server: OwnServer, psql: str
) -> None:
    url = own_server().url()
    migrate(url)
    found = []
    for number in ("it's one", "two"):
        words = [psql, *SERVICES["logins"]["command"][1:-1], "--file=-", "--dbname", url]
        given = {"OPERATOR_PASSWORD": f"o {number}", "WORKER_PASSWORD": f"w {number}"}
        done = subprocess.run(
            words, input=LOGINS, env={**os.environ, **given}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        with psycopg.connect(url) as conn:
            found += conn.execute(
                """
                select rolname, rolpassword, rolsuper or rolcreaterole or rolcreatedb, array(
                  select roleid::regrole::text from pg_auth_members where member = pg_authid.oid
                )
                from pg_authid where rolcanlogin and rolname <> current_user order by rolname
                """
            ).fetchall()

    names = [(row[0], *row[2:]) for row in found]
    assert names == 2 * [
        ("operator", False, ["treadle_operator"]),
        ("worker", False, ["treadle_worker"]),
    ]
    assert len({row[1] for row in found if row[1].startswith("SCRAM-SHA-256$")}) == 4
