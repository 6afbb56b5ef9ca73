"""`treadle demo`: real processes and a real crash on an embedded PostgreSQL.

The demo checks itself: exit code 0 means that every task ended as expected.
"""

from contextlib import AsyncExitStack
from uuid import UUID

import anyio
import typer

from treadle.app import Treadle
from treadle.cli import common, output
from treadle.cli.demo import batch
from treadle.cli.demo.batch import Batch
from treadle.cli.demo.screen import Screen
from treadle.cli.dev import (
    Child,
    embedded_server,
    program_name,
    start_child,
    stop_all,
    until_signal,
)
from treadle.db import demo as demo_db
from treadle.db.calls import Record
from treadle.db.database import Database
from treadle.db.embedded import EmbeddedServer
from treadle.errors import TreadleError, Unavailable
from treadle.settings import Settings, load_settings, origin

VICTIM, SURVIVOR = "worker-1", "worker-2"
APPLICATION = "treadle.cli.demo.app:app"
# Short leases, so that the crash is noticed soon. All settings that could change the demo are
# overridden here.
SETTINGS = {
    "slots": "4", "prefetch": "0", "queues": batch.QUEUE, "capabilities": "",
    "heartbeat_s": "1", "claim_ttl_s": "3", "poll_s": "1", "service_s": "1", "drain_s": "5",
    "notify": "true", "prepare": "true", "embedded": "false", "pool_size": "4",
    "connect_timeout_s": "10", "log_format": "console", "log_level": "info",
}  # fmt: skip
POLL_S = 0.1
# Calls that a worker sent before it was killed take effect within this time, before its leases end.
SETTLE_S = 0.5
START_WITHIN_S = 30.0
END_WITHIN_S = 60.0


def demo() -> None:
    """Run a demo: an embedded PostgreSQL, workers, a crash and the recovery.

    \b
    Example:
      treadle demo
    """
    common.quiet_logs()
    raise typer.Exit(common.run(_main(Screen(output.console()), load_settings())))


async def _main(screen: Screen, settings: Settings) -> int:
    """The exit code: 0 if all checks pass, 1 if not, 128 and more for a signal."""
    code = 1
    async with until_signal() as received:
        code = await _demo(screen, settings)
    if received:
        screen.event("■", f"{received[0].name}: all processes of the demo are stopped")
        return 128 + received[0]
    return code


async def _demo(screen: Screen, settings: Settings) -> int:
    screen.title("Treadle: every task is a row in PostgreSQL")
    async with AsyncExitStack() as stack:
        with screen.waiting("starting PostgreSQL …"):
            server = await stack.enter_async_context(embedded_server(settings))
        verb = "started" if server.started_here else "already running"
        screen.event("●", f"PostgreSQL {server.version} {verb} [dim]{server.data_dir}[/]", "green")
        run = DemoRun(screen, server)
        app = await stack.enter_async_context(Treadle(server.url()))
        await run.start(stack, app)
        with screen.live():
            await run.watch()
        found = await run.finish()
    if found:
        screen.title("Failed checks")
        for problem in found:
            screen.line(f"  [red]✕[/] {problem}")
        screen.line(f"  The logs of the processes are in {run.logs}")
        return 1
    screen.title("Next")
    screen.commands(_next_commands(run.batch, settings))
    return 0


def _next_commands(tasks: Batch, settings: Settings) -> list[tuple[str, str]]:
    """Commands to try next; the embedded server keeps the data of the demo."""
    program = program_name()
    prefix = "TREADLE_EMBEDDED=1"
    if settings.database_url is not None and origin("database_url").startswith("environment"):
        prefix = f"env -u TREADLE_DATABASE_URL -u DATABASE_URL {prefix}"
    return [
        (
            "the dead letter with its attempts",
            f"{prefix} {program} dead-letters show {_end(tasks.hopeless)}",
        ),
        ("the task that was retried", f"{prefix} {program} tasks show {_end(tasks.flaky)}"),
        ("the same processes for development; Ctrl-C stops them", f"{program} dev"),
    ]


def _end(task_id: object) -> str:
    return str(task_id)[-12:]


class DemoRun:
    """One run of the demo: start it, watch it, finish it."""

    def __init__(self, screen: Screen, server: EmbeddedServer) -> None:
        self.screen = screen
        self.logs = server.data_dir / "demo-logs"
        self.batch = Batch()
        self._url = server.url()
        self._children: dict[str, Child] = {}
        self._lost: list[UUID] = []
        self._printed: set[object] = set()
        self._db: Database

    async def start(self, stack: AsyncExitStack, app: Treadle) -> None:
        """Start the processes and enqueue the tasks."""
        self._db = app.db
        conn = await stack.enter_async_context(self._db.calls.connection())
        await demo_db.lock(conn)
        await batch.cancel_old_runs(self._db)
        stack.push_async_callback(self._stop)
        self.logs.mkdir(exist_ok=True)
        with self.screen.waiting("starting the processes …"):
            for name in (VICTIM, SURVIVOR):
                await self._start_child(name, "worker", APPLICATION)
            await self._start_child("reaper", "reaper")
            await self._start_child("promoter", "promoter")
            await self._wait_for_workers()
        names = ", ".join(f"{child.name} [dim]{child.pid}[/]" for child in self._children.values())
        self.screen.event("●", f"processes: {names}", "green")
        self.batch = await batch.enqueue_all(conn, SURVIVOR)
        self.screen.event("●", f"{len(self.batch.ids)} tasks enqueued, in one transaction", "cyan")
        self.screen.note("an order was charged twice with the same idempotency key: one task")
        self.screen.note(f"a digest is delayed by {batch.DELAY_S} s")

    async def watch(self) -> None:
        """Watch the tasks until they have ended, and kill a worker while it is busy."""
        with anyio.move_on_after(END_WITHIN_S):
            while True:
                tasks = await self.batch.read(self._db)
                await self._print(tasks)
                if not self._lost and batch.is_busy(tasks, VICTIM):
                    await self._kill()
                if batch.all_ended(tasks):
                    break
                await anyio.sleep(POLL_S)

    async def finish(self) -> list[str]:
        """Stop the processes, print what happened, and return the failed checks."""
        tasks = await self.batch.read(self._db)
        attempts = await self.batch.attempts(self._db)
        done = sum(row["status"] == "completed" for row in tasks.values())
        if batch.all_ended(tasks):
            self.screen.event(
                "✓", f"all tasks have ended, {done} of {len(tasks)} completed", "green"
            )
        else:
            self.screen.event("✕", f"{done} of {len(tasks)} completed before the time limit", "red")
        with self.screen.waiting("stopping the processes …"):
            await self._stop()
        self.screen.title("Recovered after the crash")
        self.screen.recovered(tasks, attempts)
        for title, task_id in (
            ("A retry that succeeded", self.batch.flaky),
            ("A dead letter, waiting for a decision", self.batch.hopeless),
        ):
            if task_id is not None:
                self.screen.title(title)
                self.screen.history(tasks[task_id], attempts[task_id])
        self.screen.title("Summary")
        self.screen.summary(self.batch, tasks, attempts)
        return batch.problems(self.batch, tasks, attempts, lost=self._lost, survivor=SURVIVOR)

    async def _start_child(self, name: str, *arguments: str) -> None:
        with (self.logs / f"{name}.log").open("wb") as log:
            self._children[name] = await start_child(
                name,
                arguments,
                settings={
                    **SETTINGS, "database_url": self._url, "listen_url": self._url,
                    "agent_id": name,
                },
                output=log,
            )  # fmt: skip

    async def _stop(self) -> None:
        await stop_all(list(self._children.values()))

    async def _wait_for_workers(self) -> None:
        with anyio.move_on_after(START_WITHIN_S):
            while True:
                agents = await self._db.agents.list()
                if {VICTIM, SURVIVOR} <= {row["agent_id"] for row in agents if row["alive"]}:
                    return
                for child in self._children.values():
                    if not child.alive:
                        log = self.logs / f"{child.name}.log"
                        raise TreadleError(f"{child.name} did not start", hint=f"Its log is {log}")
                await anyio.sleep(POLL_S)
        raise Unavailable(
            f"the workers did not start within {START_WITHIN_S:.0f} s",
            hint=f"Their logs are in {self.logs}",
        )

    async def _kill(self) -> None:
        victim = self._children[VICTIM]
        await victim.kill()
        await anyio.sleep(SETTLE_S)
        tasks = await self.batch.read(self._db)
        lost = batch.held_by(tasks, VICTIM)
        self._lost = [row["id"] for row in lost]
        self.screen.event("✕", f"[bold]{VICTIM} killed[/] with SIGKILL while it ran", "red")
        for row in lost:
            self.screen.note(_label(row))
        self.screen.note("[dim]the database gets no notice; its leases expire after 3 s[/]")
        await self._print(tasks)

    async def _print(self, tasks: dict[UUID, Record]) -> None:
        """Update the picture, and print each important event once."""
        self.screen.picture(tasks, {name: child.alive for name, child in self._children.items()})
        for task_id, row in tasks.items():
            status, attempt = row["status"], row["attempt"]
            if task_id in self._lost and row["agent_id"] != VICTIM:
                text = f"reaper took back {_label(row)}"
                self._print_once((task_id, "reaped"), "↻", text, "yellow")
                if status == "completed":
                    text = f"{row['completed_by']} finished {_label(row)} at attempt {attempt}"
                    self._print_once((task_id, "saved"), "✓", text, "green")
            if task_id in (self.batch.flaky, self.batch.hopeless):
                name = f"{row['type']} [bold]{batch.title_of(row)}[/]"
                if status == "retrying":
                    message = str(row["failure_reason"]).strip().rpartition("\n")[2]
                    text = f"{name}, attempt {attempt} failed: {message.partition(': ')[2]}"
                    self._print_once((task_id, attempt), "↻", text, "yellow")
                elif status == "dead_lettered":
                    text = f"{name} failed {attempt} times: a dead letter"
                    self._print_once((task_id, "dead"), "†", text, "magenta")
                elif status == "completed":
                    text = f"{name} succeeded at attempt {attempt}"
                    self._print_once((task_id, "done"), "✓", text, "green")
            if task_id == self.batch.scheduled and status == "completed":
                self._print_once(task_id, "✓", f"{_label(row)} ran when it was due", "green")

    def _print_once(self, key: object, mark: str, text: str, style: str) -> None:
        if key not in self._printed:
            self._printed.add(key)
            self.screen.event(mark, text, style)


def _label(row: Record) -> str:
    return f"{row['type']} [bold]{batch.title_of(row)}[/] [dim]{output.short(row['id'])}[/]"
