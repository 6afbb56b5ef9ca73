"""A server, and clients whose tokens are limited to a queue, an agent or a project."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from tests.drivers.databases import NewDatabase
from tests.drivers.http.servers import Conn
from tests.drivers.http.tokens import closed, create
from tests.drivers.http.v1 import act, enqueue, register, take_one

FORBIDDEN = (403, "forbidden")
ALL = ("read", "enqueue", "work", "operate")


@dataclass(frozen=True)
class Callers:
    """Clients with tokens for everything, the queue mail, the agent a and the project p.

    The agents a and b serve the queues default and mail. The agent m serves mail; the client of
    that queue registered it.
    """

    sql: Conn
    admin: httpx2.Client
    mail: httpx2.Client
    agent: httpx2.Client
    project: httpx2.Client
    # For the queue mail, without the scope operate.
    worker: httpx2.Client
    # For everything, with the scope enqueue.
    producer: httpx2.Client


@contextmanager
def bound(new_database: NewDatabase, folder: Path) -> Iterator[Callers]:
    """A server with these clients until the block ends."""
    with closed(new_database, folder) as server:
        sql = server.sql
        sql.execute("select treadle.define_queue('mail'), treadle.define_project('p')")
        callers = Callers(
            sql,
            server.client(server.tokens["admin"]),
            server.client(create(sql, "mailer", *ALL, queues=["mail"])),
            server.client(create(sql, "one", *ALL, agent="a")),
            server.client(create(sql, "projector", *ALL, project="p")),
            server.client(create(sql, "worker", "enqueue", "work", queues=["mail"])),
            server.client(server.tokens["enqueue"]),
        )
        for agent in "ab":
            register(callers.admin, agent, queues=["default", "mail"])
        register(callers.mail, "m", queues=["mail"])
        yield callers


def empty(callers: Callers) -> None:
    """Delete all tasks, DAGs and events."""
    callers.sql.execute("truncate treadle.tasks, treadle.dags, treadle.events cascade")


def completed(http: httpx2.Client, output: object = "secret", **said: object) -> str:
    """The id of a task that has ended with an output, and one file."""
    task_id = enqueue(http, **said)
    claim = take_one(http, "a", queues=[str(said.get("queue", "default"))])
    act(http, claim, "artifacts", name="f", uri="file:///f")
    assert act(http, claim, "complete", output=output).status_code == 200
    return task_id
