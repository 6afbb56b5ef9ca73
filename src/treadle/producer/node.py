"""The tasks of a DAG while it is built: their names, dependencies and inputs."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from treadle.errors import InvalidArgument
from treadle.fields import EnqueueOptions, NodeOptions
from treadle.masking import excerpt
from treadle.producer.handle import Handle
from treadle.producer.task import Task
from treadle.worker.references import (
    After,
    Input,
    Named,
    TaskReference,
    make_edges,
    make_references,
    merge_inputs,
    split_outputs,
)
from treadle.worker.registry import Call, make_options

if TYPE_CHECKING:
    from treadle.producer.dag import Dag
    from treadle.worker.registry import Definition, Registry


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
