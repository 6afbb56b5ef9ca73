"""Agents with an HTTP interface for the tests of the dispatcher, and what they executed."""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.drivers.processes import children
from tests.drivers.processes.children import ROOT, Conn, rows, value
from tests.drivers.processes.fork_server import forks

# Processes start slowly when many start at once.
until = partial(children.until, within=30)
QUICK = {
    "service_s": 0.1,
    "dispatch_every_s": 0.1,
    "track_every_s": 0.1,
    "dispatch_lease_s": 1,
    "queue_dispatch_timeout_s": 1,
    "dispatch_unsure_s": 2,
}
# For tests that must see neither a timeout nor a takeover, however slow the machine is.
PATIENT = {
    **QUICK,
    "dispatch_lease_s": 60,
    "queue_dispatch_timeout_s": 5,
    "dispatch_unsure_s": 15,
}
Agents = Callable[..., "PushAgent"]


class PushAgent:
    """An agent in a process of its own."""

    def __init__(self, name: str, file: Path, **modes: Any) -> None:
        self.name = name
        self.file = file
        self.port = 0
        self.start(**modes)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, **modes: Any) -> None:
        """Start it, also after it was killed: on the same port, without its state."""
        log = self.file.with_suffix(".log")
        log.unlink(missing_ok=True)
        words = [str(self.port), str(self.file)]
        self._process = forks().start(
            "tests.drivers.apps.push_agent", words, env=os.environ, cwd=ROOT, log=log
        )
        began = time.monotonic()
        while not (log.exists() and (said := log.read_text()).endswith("\n")):
            assert time.monotonic() - began < 30, "the agent did not start"
            time.sleep(0.005)
        self.port = int(said)
        if modes:
            self.set(**modes)

    def set(self, **modes: Any) -> None:
        """Tell it how to behave from now on."""
        self._control(modes)

    @property
    def requests(self) -> list[str]:
        """The requests that it got: POST key, GET id, CANCEL id."""
        found: list[str] = self._control(None)["requests"]
        return found

    @property
    def polls(self) -> int:
        """How often it was asked for its status."""
        return int(self._control(None)["polls"])

    def executed(self) -> list[str]:
        """The queue ids that it has executed, in order."""
        return [line["queue_id"] for line in self.lines()]

    def lines(self) -> list[dict[str, Any]]:
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def send(self, number: signal.Signals) -> None:
        """SIGSTOP: it is connected to, and never answers."""
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(timeout=40)

    def _control(self, modes: dict[str, Any] | None) -> dict[str, Any]:
        body = None if modes is None else json.dumps(modes).encode()
        with urllib.request.urlopen(f"{self.url}/control", body, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


async def submit(conn: Conn, count: int = 1, **request: Any) -> list[str]:
    """Queue prompts, one after the other."""
    return [
        await value(
            conn,
            "select queue_id from treadle.submit_push(%s::jsonb, 'cli', null, 1000, 3)",
            json.dumps({"prompt": f"prompt {number}", **request}),
        )
        for number in range(count)
    ]


async def entry(conn: Conn, queue_id: str) -> dict[str, Any]:
    """An entry of the queue as submitters see it."""
    cursor = await conn.execute(
        "select row_to_json(push_queue) from treadle.push_queue where queue_id = %s", (queue_id,)
    )
    ((found,),) = await cursor.fetchall()
    return dict(found)


async def ended(conn: Conn, *queue_ids: str, state: str = "completed") -> bool:
    """Whether all of these ended with this outcome."""
    found = await rows(
        conn,
        "select count(*) from treadle.push_queue where queue_id = any (%s) and state = %s",
        list(queue_ids),
        state,
    )
    return found == [(len(queue_ids),)]


async def pass_silence(conn: Conn) -> None:
    """Move the last response of all agents an hour into the past."""
    await conn.execute("update treadle.dispatches set heard_at = heard_at - interval '1 hour'")


async def outcomes(conn: Conn, queue_id: str) -> list[str | None]:
    """The outcomes of the submissions of an entry, in order."""
    found = await rows(
        conn,
        "select outcome from treadle.push_dispatch_log where queue_id = %s order by sent_at",
        queue_id,
    )
    return [outcome for (outcome,) in found]


GATE = """
create function public.gate() returns trigger language plpgsql as $$
begin
  perform pg_advisory_lock_shared(42);
  perform pg_advisory_unlock_shared(42);
  return new;
end
$$;
create trigger gate_claimed before insert on treadle.dispatches
for each row execute function public.gate();
create trigger gate_answered before update on treadle.dispatches
for each row when (new.accepted_at is not null and old.accepted_at is null)
execute function public.gate();
create trigger gate_ended before update on treadle.dispatches
for each row when (new.ended_at is not null) execute function public.gate();
alter table treadle.dispatches disable trigger user;
"""


class Gate:
    """Stops a dispatcher in the middle of a call: claimed, answered or ended."""

    def __init__(self, conn: Conn) -> None:
        self._conn = conn

    async def build(self) -> None:
        await self._conn.execute(GATE)

    async def close(self, point: str) -> None:
        await self._conn.execute("select pg_advisory_lock(42)")
        await self._conn.execute(
            f"alter table treadle.dispatches enable trigger gate_{point}".encode()
        )

    async def reached(self) -> None:
        await until(lambda: rows(self._conn, f"{WAITING} and not granted"))

    async def open(self, *, forget: bool = False) -> None:
        """Let the call continue, or cancel it without effect."""
        if forget:
            # Until its session has ended; another may wait here by then, and that one counts.
            query = f"select pg_terminate_backend(pid, 30000) from ({WAITING}) as waiting"
            await rows(self._conn, query)
        await self._conn.execute("select pg_advisory_unlock(42)")
        await until(lambda: _none(self._conn))
        await self._conn.execute("alter table treadle.dispatches disable trigger user")


WAITING = "select pid from pg_locks where locktype = 'advisory' and mode = 'ShareLock'"


async def _none(conn: Conn) -> bool:
    return not await rows(conn, WAITING)
