"""The story that `treadle demo` tells: processes, work, a crash, the recovery."""

from contextlib import AsyncExitStack
from uuid import UUID

import anyio

from treadle.app import Treadle
from treadle.cli import output
from treadle.cli.demo import batch
from treadle.cli.demo.batch import Batch
from treadle.cli.demo.screen import Screen
from treadle.cli.processes import Child, start_child, stop_all
from treadle.db.calls import Record
from treadle.db.database import Database
from treadle.db.embedded import EmbeddedServer
from treadle.errors import TreadleError, Unavailable

VICTIM, SURVIVOR = "worker-1", "worker-2"
APPLICATION = "treadle.cli.demo.app:app"
# Short leases, so that the crash is noticed while one watches. Everything that a user's own
# settings could change is set here.
SETTINGS = {
    "slots": "4", "prefetch": "0", "queues": batch.QUEUE, "capabilities": "",
    "heartbeat_s": "1", "claim_ttl_s": "3", "poll_s": "1", "service_s": "1", "drain_s": "5",
    "notify": "true", "prepare": "true", "embedded": "false", "pool_size": "4",
    "connect_timeout_s": "10", "log_format": "console", "log_level": "info",
}  # fmt: skip
LOOK_S = 0.1
# What a worker sent before it was killed still takes effect; its leases last longer than this.
SETTLE_S = 0.5
START_WITHIN_S = 30.0
END_WITHIN_S = 60.0


class Story:
    """The demo in three acts, on one server."""

    def __init__(self, screen: Screen, server: EmbeddedServer) -> None:
        self.screen = screen
        self.logs = server.data_dir / "demo-logs"
        self.batch = Batch()
        self._url = server.url()
        self._children: dict[str, Child] = {}
        self._lost: list[UUID] = []
        self._told: set[object] = set()
        self._db: Database

    async def begin(self, stack: AsyncExitStack, app: Treadle) -> None:
        """Processes, and work for them."""
        self._db = app.db
        conn = await stack.enter_async_context(self._db.calls.connection())
        await batch.be_the_only_one(conn)
        await batch.forget_old_runs(self._db)
        stack.push_async_callback(self._stop)
        self.logs.mkdir(exist_ok=True)
        with self.screen.waiting("starting the processes …"):
            for name in (VICTIM, SURVIVOR):
                await self._start(name, "worker", APPLICATION)
            await self._start("reaper", "reaper")
            await self._start("promoter", "promoter")
            await self._until_workers_are_there()
        names = ", ".join(f"{child.name} [dim]{child.pid}[/]" for child in self._children.values())
        self.screen.say("●", f"processes: {names}", "green")
        self.batch = await batch.enqueue_all(conn, SURVIVOR)
        self.screen.say("●", f"{len(self.batch.ids)} tasks enqueued, in one transaction", "cyan")
        self.screen.note("an order was charged twice with the same key: one task")
        self.screen.note(f"a digest is to be sent in {batch.DELAY_S} s, not before")

    async def middle(self) -> None:
        """Watch it; kill a worker at its busiest; watch on until all is done."""
        with anyio.move_on_after(END_WITHIN_S):
            while True:
                tasks = await self.batch.read(self._db)
                await self._tell(tasks)
                if not self._lost and batch.good_to_kill(tasks, VICTIM):
                    await self._kill()
                if batch.all_ended(tasks):
                    break
                await anyio.sleep(LOOK_S)

    async def end(self) -> list[str]:
        """Stop the processes, show what happened, and say what was not as it should be."""
        tasks = await self.batch.read(self._db)
        attempts = await self.batch.attempts(self._db)
        done = sum(row["status"] == "completed" for row in tasks.values())
        if batch.all_ended(tasks):
            self.screen.say("✓", f"all tasks have ended, {done} of {len(tasks)} completed", "green")
        else:
            self.screen.say("✕", f"{done} of {len(tasks)} completed, and no more time", "red")
        with self.screen.waiting("stopping the processes …"):
            await self._stop()
        self.screen.title("Recovered after the crash")
        self.screen.recovered(tasks, attempts)
        for title, task_id in (
            ("A retry that succeeded", self.batch.flaky),
            ("A dead letter, kept for a person to decide", self.batch.hopeless),
        ):
            if task_id is not None:
                self.screen.title(title)
                self.screen.history(tasks[task_id], attempts[task_id])
        self.screen.title("Summary")
        self.screen.summary(self.batch, tasks, attempts)
        return batch.problems(self.batch, tasks, attempts, lost=self._lost, survivor=SURVIVOR)

    async def _start(self, name: str, *arguments: str) -> None:
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

    async def _until_workers_are_there(self) -> None:
        with anyio.move_on_after(START_WITHIN_S):
            while True:
                agents = await self._db.agents.list()
                if {VICTIM, SURVIVOR} <= {row["agent_id"] for row in agents if row["alive"]}:
                    return
                for child in self._children.values():
                    if not child.alive:
                        log = self.logs / f"{child.name}.log"
                        raise TreadleError(f"{child.name} did not start", hint=f"Its log is {log}")
                await anyio.sleep(LOOK_S)
        raise Unavailable(
            f"the workers did not start within {START_WITHIN_S:.0f} s",
            hint=f"Their logs are in {self.logs}",
        )

    async def _kill(self) -> None:
        victim = self._children[VICTIM]
        await victim.kill()
        await anyio.sleep(SETTLE_S)
        tasks = await self.batch.read(self._db)
        lost = batch.lost_by(tasks, VICTIM)
        self._lost = [row["id"] for row in lost]
        self.screen.say("✕", f"[bold]{VICTIM} killed[/] with SIGKILL, in the middle of", "red")
        for row in lost:
            self.screen.note(_named(row))
        self.screen.note("[dim]nobody tells the database; its leases end after 3 s of silence[/]")
        await self._tell(tasks)

    async def _tell(self, tasks: dict[UUID, Record]) -> None:
        """Show the picture, and each event that matters once."""
        self.screen.picture(tasks, {name: child.alive for name, child in self._children.items()})
        for task_id, row in tasks.items():
            status, attempt = row["status"], row["attempt"]
            if task_id in self._lost and row["agent_id"] != VICTIM:
                text = f"reaper took back {_named(row)}"
                self._once((task_id, "reaped"), "↻", text, "yellow")
                if status == "completed":
                    text = f"{row['completed_by']} finished {_named(row)} at attempt {attempt}"
                    self._once((task_id, "saved"), "✓", text, "green")
            if task_id in (self.batch.flaky, self.batch.hopeless):
                name = f"{row['type']} [bold]{batch.name_of(row)}[/]"
                if status == "retrying":
                    said = str(row["failure_reason"]).strip().rpartition("\n")[2]
                    text = f"{name}, attempt {attempt} failed: {said.partition(': ')[2]}"
                    self._once((task_id, attempt), "↻", text, "yellow")
                elif status == "dead_lettered":
                    text = f"{name} gave up after attempt {attempt}: a dead letter"
                    self._once((task_id, "dead"), "†", text, "magenta")
                elif status == "completed":
                    text = f"{name} succeeded at attempt {attempt}"
                    self._once((task_id, "done"), "✓", text, "green")
            if task_id == self.batch.scheduled and status == "completed":
                self._once(task_id, "✓", f"{_named(row)} ran when its time had come", "green")

    def _once(self, key: object, mark: str, text: str, style: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self.screen.say(mark, text, style)


def _named(row: Record) -> str:
    return f"{row['type']} [bold]{batch.name_of(row)}[/] [dim]{output.short(row['id'])}[/]"
