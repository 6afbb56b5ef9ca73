"""Apparent credentials and long payload texts appear in no error and no log."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from psycopg import DatabaseError
from psycopg.types.json import Jsonb

from tests.drivers.http.servers import Conn, Served
from treadle import Treadle
from treadle.errors import TreadleError

# Joined here, so that nobody's scanner takes this file for a leak.
CREDENTIAL = "ghp_" + "a1B2" * 9
PASSPHRASE = "correct horse battery staple, and more of it"
TASK = {
    "type": "code",
    "queue": "default",
    "spec": {"a": {"b": [1]}},
    "priority": 50,
    "tags": ["x"],
    "retry": {"strategy": "fixed", "retry_on": ["error"]},
    "validation": [{"validator": "regex", "settings": {"pattern": "x"}}],
    "run_at": "2030-01-01T00:00:00Z",
    "deadline_at": "2030-01-01T00:00:00Z",
    "max_attempts": 3,
    "timeout_s": 30,
    "meta": {},
}
DOORS: dict[str, tuple[str, dict[str, Any]]] = {
    "POST /v1/tasks": ("POST", TASK),
    "POST /v1/tasks/batch": ("POST", {"tasks": [TASK]}),
    "POST /v1/dags": (
        "POST",
        {
            "name": "plan",
            "tasks": [
                {"name": "a", "type": "code", "spec": {"x": 1}},
                {
                    "name": "b",
                    "type": "code",
                    "after": ["a"],
                    "inputs": {"y": "task:a:output"},
                    "spec": {"z": {"w": 1}},
                    "retry": {"strategy": "fixed"},
                },
            ],
        },
    ),
    "PUT /v1/schedules/nightly": (
        "PUT",
        {"cron": "0 3 * * *", "task": {"type": "code", "queue": "default", "spec": {"a": 1}}},
    ),
    "PUT /v1/triggers/reaction": (
        "PUT",
        {
            "on": ["order.paid"],
            "task": {"type": "code", "queue": "default", "spec": {"a": {"$event": "key"}}},
        },
    ),
    "POST /work": (
        "POST",
        {"type": "code_review", "description": "Review", "priority": 3, "external_ref": "x"},
    ),
    "POST /api/queue/task": (
        "POST",
        {"prompt": "do it", "project": {"a": {"b": 1}}, "env": {"X": "y"}, "timeout_seconds": 5},
    ),
    "POST /harness/tasks": (
        "POST",
        {"agent_url": "http://agent-1:9000", "payload": {"a": {"b": [1]}}},
    ),
}
# The names of things: errors repeat one that is not known, up to a length.
NAMES = {"type", "queue", "name", "after", "tags", "on", "cron", "agent_url", "strategy"}


def variants(body: Any, secret: str, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """The body with the secret in each place of it: as a value, as a key, nested."""
    inside = body
    for part in path:
        inside = inside[part]
    if isinstance(inside, dict):
        for added in ({secret: 1}, {secret: "x"}, {secret: {"a": 1}}, {"other": {secret: 1}}):
            changed = copy.deepcopy(body)
            place = changed
            for part in path:
                place = place[part]
            place.update(added)
            yield (*path, "+"), changed
    if isinstance(inside, (dict, list)):
        for key in inside if isinstance(inside, dict) else range(len(inside)):
            yield from variants(body, secret, (*path, key))
    if path:
        for value in (
            secret,
            [secret],
            {secret: 1},
            {"token": secret},
            [{"a": [{secret: secret}]}],
        ):
            changed = copy.deepcopy(body)
            place = changed
            for part in path[:-1]:
                place = place[part]
            place[path[-1]] = value
            yield path, changed


class Log:
    """What servers wrote since this was made."""

    def __init__(self, server: Served, sql: Conn) -> None:
        found = sql.execute("select current_setting('data_directory')").fetchone()
        assert found is not None
        # The embedded server's log stands beside its data; another server's is not looked at.
        self._files = [server.child.log, Path(found[0]).parent / "server.log"]
        self._sizes = [each.stat().st_size if each.exists() else 0 for each in self._files]

    @property
    def has_database(self) -> bool:
        return self._files[1].exists()

    def new(self) -> str:
        text = ""
        for each, size in zip(self._files, self._sizes, strict=True):
            if each.exists():
                with each.open("rb") as file:
                    file.seek(size)
                    text += file.read().decode(errors="replace")
        return text


@pytest.fixture
def log(server: Served, sql: Conn) -> Log:
    sql.execute("select treadle.define_type('code')")
    sql.execute("select treadle.define_type('code_review')")
    return Log(server, sql)


@pytest.mark.requirement("H10")
@pytest.mark.parametrize("secret", [CREDENTIAL, PASSPHRASE], ids=["credential", "passphrase"])
@pytest.mark.parametrize("door", DOORS)
def test_a_refused_request_does_not_repeat_it(
    http: httpx2.Client, log: Log, door: str, secret: str
) -> None:
    method, body = DOORS[door]
    refused = 0
    for path, changed in variants(body, secret):
        if secret == PASSPHRASE and NAMES.intersection(path):
            continue
        answer = http.request(method, door.split()[1], json=changed)
        assert answer.status_code < 500, (path, answer.text)
        assert answer.text.find('"code":"not-found"') == -1, "there is no such route"
        if answer.status_code >= 400:
            refused += 1
            assert_masked(secret, answer.text, path)

    assert refused > 5
    assert_masked(secret, log.new(), "log")


def assert_masked(secret: str, text: str, path: object) -> None:
    assert secret not in text, (path, text)
    assert secret[:12] not in text, (path, text)


SQL = {
    "enqueue_task": "select treadle.enqueue_task('default', 'code', %s)",
    "enqueue_task options": "select treadle.enqueue_task('default', 'code', '{}', %s)",
    "create_dag": "select treadle.create_dag('d', jsonb_build_array(%s))",
    "define_schedule": "select treadle.define_schedule('s', %s)",
    "define_trigger": "select treadle.define_trigger('t', %s)",
    "enqueue_harness_task": "select treadle.enqueue_harness_task('http://a:9000', %s)",
    "submit_push": "select treadle.submit_push(%s)",
    "find_secret": "select treadle.reject_secret(%s, 'payload')",
}


@pytest.mark.requirement("H10")
@pytest.mark.parametrize("secret", [CREDENTIAL, PASSPHRASE], ids=["credential", "passphrase"])
@pytest.mark.parametrize("name", SQL)
def test_an_error_of_sql_does_not_repeat_it(sql: Conn, log: Log, name: str, secret: str) -> None:
    shapes: list[Any] = [
        secret,
        [secret],
        {secret: 1},
        {secret: {"token": "abc"}},
        {"token": secret},
        {"a": {"b": [{secret: secret}]}},
        *({field: secret} for field in ("priority", "run_at", "retry", "delay_s", "spec", "hold")),
        {"name": "a", "type": "code", "inputs": {secret: secret}},
        {"name": "a", "type": "code", "retry": {"strategy": secret}},
        {"name": "a", "type": "code", "retry": {secret: 1}},
        {"task": {"type": "code", "spec": secret}, "cron": "* * * * *"},
        {"every_s": secret, "task": {"type": "code"}},
        {"on": ["a"], "task": {"type": "code", "spec": {"x": {"$event": secret}}}},
    ]
    refused = 0
    for shape in shapes:
        try:
            sql.execute(SQL[name].encode(), [Jsonb(shape)])
        except DatabaseError as error:
            refused += 1
            assert_masked(secret, str(error), shape)

    assert refused > 0
    assert_masked(secret, log.new(), "log")
    assert not log.has_database or "ERROR:" in log.new()


@pytest.mark.requirement("H10")
async def test_an_error_of_python_does_not_repeat_it(server: Served, sql: Conn, log: Log) -> None:
    async with Treadle(server.database_url) as app:

        @app.task()
        async def code(url: str, *, depth: int = 1) -> None:
            """A task with two arguments."""

        for secret in (CREDENTIAL, PASSPHRASE):
            wrong: list[dict[str, Any]] = [
                {secret: 1},
                {"url": {secret: 1}},
                {"url": "x", "depth": secret},
                {"url": "x", secret: secret},
            ]
            for arguments in wrong:
                with pytest.raises(TreadleError) as raised:
                    await code.enqueue(**arguments)
                shown = f"{raised.value} {raised.value.hint} {raised.value.detail}"
                assert_masked(secret, shown, arguments)
            for payload in ({secret: "\0"}, {"a": {secret: float("nan")}}, {secret: [object()]}):
                with pytest.raises(TreadleError) as raised:
                    await app.enqueue("code", payload)
                assert_masked(secret, f"{raised.value} {raised.value.detail}", payload)
            with pytest.raises(TreadleError) as raised:
                app.dag("plan").add({secret: secret})  # type: ignore[arg-type]
            assert_masked(secret, str(raised.value), "dag")

    for secret in (CREDENTIAL, PASSPHRASE):
        assert_masked(secret, log.new(), "log")
