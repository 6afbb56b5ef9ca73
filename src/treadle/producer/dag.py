"""DAGs: built in a block and created at once, or opened and extended over time.

async with app.dag("Build landing page") as dag:
    research = dag.add(research_task, topic="competitors")
    dag.add(design_task, after=[research], brief=research.output)
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict
from uuid import UUID, uuid4

import anyio

from treadle.db.dags import CreatedDag, create_async, create_sync
from treadle.db.pool import is_sync
from treadle.errors import InvalidArgument, ResultTimeout, Unavailable
from treadle.fields import EnqueueOptions, NodeOptions
from treadle.json import encode
from treadle.masking import excerpt
from treadle.models import DagState
from treadle.producer.background import running_loop
from treadle.producer.handle import Handle
from treadle.producer.task import Task
from treadle.worker.references import (
    After,
    Input,
    Named,
    Source,
    TaskReference,
    id_of,
    make_edges,
    make_references,
    merge_inputs,
    split_outputs,
)
from treadle.worker.registry import Call, make_options

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.tasks import AnyConnection
    from treadle.worker.registry import Definition, Registry

ENDED = frozenset({"completed", "cancelled"})
FIRST_S, LONGEST_S = 0.01, 0.5


class DagOptions(TypedDict, total=False):
    """The options of a DAG."""

    key: str | None
    on_dead_letter: Literal["wait", "cancel", "continue"]
    budget_usd: float | Decimal | None
    project_id: UUID | None
    created_by: str | None
    meta: Mapping[str, Any] | None


class Dag:
    """A DAG that is being built; it is created as a whole when the block ends without an error."""

    def __init__(
        self,
        app: Treadle,
        name: str,
        options: Mapping[str, Any],
        conn: AnyConnection | None = None,
    ) -> None:
        self.name = name
        self._app = app
        self._conn = conn
        self._document = dag_document(name, options)
        self._nodes: dict[str, Node] = {}
        self._names = NameGenerator(self._nodes)
        self._tasks: list[dict[str, Any]] = []
        self._handle: DagHandle | None = None

    def __repr__(self) -> str:
        return f"<Dag {self.name}>"

    def add(
        self,
        task: Task | Call | str,
        /,
        *,
        name: str | None = None,
        after: After | Iterable[After] = (),
        inputs: Mapping[str, Input] | None = None,
        options: NodeOptions | None = None,
        **arguments: Any,
    ) -> Node:
        """Add a task; arguments named like the options here go into `task.call(…)`."""
        if self._handle is not None:
            raise InvalidArgument(
                f"the DAG {self.name} is already created",
                hint="To add tasks over time, use app.open_dag(…)",
            )
        chosen = name if name is not None else self._names.free(type_of(task))
        if chosen in self._nodes:
            raise InvalidArgument(
                f"two tasks of the DAG are named {chosen}",
                hint="Choose another name: dag.add(…, name=…)",
                argument="name",
            )
        described = task_document(
            task, arguments, registry=self._app.registry, named=self._name_of,
            name=chosen, after=after, inputs=inputs, options=options,
        )  # fmt: skip
        self._tasks.append(described)
        self._nodes[chosen] = Node(self, chosen)
        return self._nodes[chosen]

    @property
    def nodes(self) -> list[Node]:
        """The tasks of the DAG in the order in which they were added."""
        return list(self._nodes.values())

    @property
    def handle(self) -> DagHandle:
        if self._handle is None:
            raise InvalidArgument(
                f"the DAG {self.name} does not exist yet", hint="It is created when its block ends."
            )
        return self._handle

    @property
    def id(self) -> UUID:
        return self.handle.id

    @property
    def created(self) -> bool:
        """Whether the DAG is new; False if one with its key existed."""
        return self.handle.created

    async def wait(self, timeout: float | None = None) -> DagState:
        """Wait until the DAG has ended and return its state."""
        return await self.handle.wait(timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, failed: object, *_: object) -> None:
        if failed is None:
            self._made(await self._create())

    def __enter__(self) -> Self:
        plain = running_loop() is None if self._conn is None else is_sync(self._conn)
        if not plain:
            raise InvalidArgument(
                "a plain `with` needs a plain connection in async code",
                hint="Use `async with app.dag(…)`, or pass conn=psycopg.connect(…)",
                argument="conn",
            )
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        if failed is None:
            if self._conn is None:
                made = self._app.run(self._create(), timeout=self._app.sync_timeout_s)
            else:
                assert is_sync(self._conn)
                made = create_sync(self._conn, self._text())
            self._made(made)

    async def _create(self) -> CreatedDag:
        if self._conn is None:
            return await self._app.db.dags.create(self._text())
        if is_sync(self._conn):
            return create_sync(self._conn, self._text())
        conn: Any = self._conn
        return await create_async(conn, self._text())

    def _text(self) -> bytes:
        if not self._tasks:
            raise InvalidArgument(
                f"the DAG {self.name} has no tasks", hint="Add a task in the block: dag.add(…)"
            )
        return encode({**self._document, "tasks": self._tasks}, name="dag")

    def _made(self, made: CreatedDag) -> None:
        self._handle = DagHandle(self._app, made.id, created=made.created)
        for node, task_id in zip(self._nodes.values(), made.ids, strict=True):
            node.handle = Handle(self._app, task_id, created=task_id not in made.reused)

    def _name_of(self, source: Source) -> str:
        if isinstance(source, Node):
            if source.dag is not self:
                raise InvalidArgument(
                    f"{source.name} belongs to another DAG",
                    hint="Once that DAG is created, depend on its task by id: after=[node.id]",
                )
            return source.name
        return id_of(source)


def dag_document(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a DAG without its tasks for SQL; it always has a key, so that it can be repeated."""
    given = {option: value for option, value in options.items() if value is not None}
    if isinstance(given.get("budget_usd"), Decimal):
        given["budget_usd"] = float(given["budget_usd"])
    return {"key": f"dag-{uuid4()}", **given, "name": name}


class DagHandle:
    """The handle of a DAG."""

    def __init__(self, app: Treadle, dag_id: UUID, *, created: bool = True) -> None:
        self._app = app
        self.id = dag_id
        self.created = created

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    async def state(self) -> DagState:
        """Return the progress of the DAG."""
        return await self._app.db.dags.read(self.id)

    async def wait(self, timeout: float | None = None) -> DagState:
        """Wait until the DAG has ended or failed; return its state."""
        status: str | None = None
        pause = FIRST_S
        try:
            with anyio.fail_after(timeout):
                while (status := await self._status_or(status)) not in ENDED:
                    await anyio.sleep(pause)
                    pause = min(pause * 1.5, LONGEST_S)
                return await self.state()
        except TimeoutError:
            known = f"; it is {status}" if status else ""
            raise ResultTimeout(
                f"DAG {self.id} has not ended within {timeout:g} s{known}",
                hint=f"See what it waits for: treadle dags show {self.id}",
                dag_id=str(self.id),
                status=status,
            ) from None

    async def cancel(self, reason: str | None = None) -> int:
        """Cancel the tasks that have not ended; return their number."""
        return await self._app.db.dags.cancel(self.id, reason)

    async def retry(self, note: str | None = None) -> int:
        """Retry the dead-lettered and cancelled tasks; return their number."""
        return await self._app.db.dags.retry(self.id, note)

    async def _status_or(self, before: str | None) -> str | None:
        try:
            return await self._app.db.dags.status(self.id)
        except Unavailable:
            return before


class OpenDag(DagHandle):
    """A DAG to which tasks are added over time; its tasks run once it is started."""

    async def add(
        self,
        task: Task | Call | str,
        /,
        *,
        name: str | None = None,
        after: After | Iterable[After] = (),
        inputs: Mapping[str, Input] | None = None,
        options: NodeOptions | None = None,
        **arguments: Any,
    ) -> DagTask:
        """Add a task; a second call with the same name returns the same task."""
        described = task_document(
            task, arguments, registry=self._app.registry, named=id_of,
            name=name, after=after, inputs=inputs, options=options,
        )  # fmt: skip
        [made] = await self._app.db.dags.add_tasks(self.id, [described])
        handle = DagTask(self._app, made.id, created=made.created)
        handle.name = name
        return handle

    async def depend(self, task: Handle, on: Handle, *, optional: bool = False) -> bool:
        """Make a task depend on another; return False if it already did."""
        return await self._app.db.dags.add_dependency(task.id, on.id, optional=optional)

    async def start(self) -> int:
        """Start the DAG, so that its tasks can run."""
        return await self._app.db.dags.start(self.id)


class Node(TaskReference):
    """A task of a DAG that is being built; its id is known once the DAG is created."""

    __slots__ = ("_handle", "dag", "name")

    def __init__(self, dag: Dag, name: str) -> None:
        self.dag = dag
        self.name = name
        self._handle: Handle | None = None

    def __repr__(self) -> str:
        return f"<Node {self.name}>"

    @property
    def handle(self) -> Handle:
        """The handle of the task."""
        if self._handle is None:
            raise InvalidArgument(
                f"task {self.name} does not exist yet",
                hint="The DAG is created when its block ends.",
            )
        return self._handle

    @handle.setter
    def handle(self, handle: Handle) -> None:
        self._handle = handle

    @property
    def id(self) -> UUID:
        return self.handle.id


class DagTask(Handle):
    """A task that was added to an open DAG."""

    __slots__ = ("name",)

    name: str | None


def task_document(
    what: Task | Call | str,
    arguments: Mapping[str, Any],
    *,
    registry: Registry,
    named: Named,
    name: str | None,
    after: After | Iterable[After],
    inputs: Mapping[str, Input] | None,
    options: NodeOptions | None,
) -> dict[str, Any]:
    """Return one task for SQL; `named` returns the references of its dependencies."""
    definition, given, chosen = _parts(what, arguments, registry)
    chosen = {**chosen, **(options or {})}
    edges = [
        *make_edges(chosen.pop("after", ()), named),
        *make_edges(after, named),
    ]
    given, outputs = split_outputs(given)
    also = {**chosen.pop("inputs", {}), **(inputs or {})}
    references = make_references(merge_inputs(given, outputs, also), named)
    if isinstance(what, str) and definition is None:
        queue, others, key = make_options(chosen)
        made = {**others, "queue": queue, "type": what, "spec": given}
        if key is not None:
            made["idempotency_key"] = key
        if define := registry.define(what, queue):
            made["define"] = define
    else:
        assert definition is not None
        definition.check(given, references)
        made = Call(definition, given, chosen).as_json(check=False)
    if name is not None:
        made["name"] = name
    if edges:
        made["after"] = edges
    if references:
        made["inputs"] = references
    return made


def type_of(what: Task | Call | str) -> str:
    """Return the type of the task."""
    if isinstance(what, str):
        return what
    if isinstance(what, Task | Call):
        return what.definition.name
    raise _no_task(what)


class NameGenerator:
    """Generates default names of tasks: the type, then the type with a number."""

    def __init__(self, taken: Container[str]) -> None:
        self._taken = taken
        self._numbers: dict[str, int] = {}

    def free(self, base: str) -> str:
        """Return the next free name."""
        while True:
            number = self._numbers[base] = self._numbers.get(base, 0) + 1
            name = base if number == 1 else f"{base}-{number}"
            if name not in self._taken:
                return name


def _parts(
    what: Task | Call | str, arguments: Mapping[str, Any], registry: Registry
) -> tuple[Definition | None, dict[str, Any], EnqueueOptions]:
    """Return the definition, arguments and options; a type may have no handler here."""
    if isinstance(what, Task):
        what = what.call(**arguments)
        return what.definition, what.arguments, what.options
    if isinstance(what, Call):
        return what.definition, {**what.arguments, **arguments}, what.options
    if isinstance(what, str):
        definition = registry.get(what)
        own: EnqueueOptions = {"queue": definition.queue} if definition else {}
        return definition, dict(arguments), own
    raise _no_task(what)


def _no_task(what: object) -> InvalidArgument:
    return InvalidArgument(
        f"{excerpt(what)} is not a task",
        hint="Pass a task, a call, or the name of a type.",
    )
