"""The tasks of a DAG while it is built: their names, dependencies and inputs."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from treadle.errors import InvalidArgument
from treadle.fields import EnqueueOptions, NodeOptions
from treadle.masking import excerpt, excerpt_name
from treadle.producer.handle import Handle
from treadle.producer.task import Task
from treadle.worker.registry import Call, make_options

if TYPE_CHECKING:
    from treadle.producer.dag import Dag
    from treadle.worker.registry import Definition, Registry


class Node:
    """A task of a DAG that is being built; its id is known once the DAG is created."""

    __slots__ = ("_handle", "dag", "name")

    def __init__(self, dag: Dag, name: str) -> None:
        self.dag = dag
        self.name = name
        self._handle: Handle | None = None

    def __repr__(self) -> str:
        return f"<Node {self.name}>"

    @property
    def output(self) -> Output:
        """The output as an argument of a later task; `node.output["title"]` is a part of it."""
        return Output(self)

    def artifact(self, name: str) -> ArtifactOutput:
        """Return a file that the task will store, as an argument of a later task."""
        return ArtifactOutput(self, name)

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

    @property
    def output(self) -> Output:
        """The output as an argument of a later task; `task.output["title"]` is a part of it."""
        return Output(self)

    def artifact(self, name: str) -> ArtifactOutput:
        """Return a file that the task will store, as an argument of a later task."""
        return ArtifactOutput(self, name)


Source = Node | Handle | UUID | str


class Output:
    """The future output of a task, or a part of it, as an argument of another task."""

    __slots__ = ("of", "path")

    def __init__(self, of: Source, path: tuple[str, ...] = ()) -> None:
        self.of = of
        self.path = path

    def __repr__(self) -> str:
        return f"<Output of {self.of!r}{''.join(f'[{part!r}]' for part in self.path)}>"

    def __getitem__(self, key: str | int) -> Output:
        part = str(key)
        if not part or "." in part:
            raise InvalidArgument(
                f"{excerpt_name(part)!r} cannot be a part of a reference",
                hint="Pass the object that contains it, and read the part in the handler.",
            )
        return Output(self.of, (*self.path, part))

    @property
    def part(self) -> str:
        """The part of the task in a reference."""
        return ".".join(("output", *self.path))


class ArtifactOutput(Output):
    """A file that a task will store, as an argument of another task."""

    __slots__ = ("name",)

    def __init__(self, of: Source, name: str) -> None:
        super().__init__(of)
        self.name = name

    @property
    def part(self) -> str:
        return f"artifact:{self.name}"


class OptionalDependency:
    """A dependency that may also end as cancelled or dead-lettered."""

    __slots__ = ("of",)

    def __init__(self, of: Source) -> None:
        self.of = of


def optional(task: Source) -> OptionalDependency:
    """Depend on a task, but continue if it is cancelled: `after=[optional(node)]`."""
    return OptionalDependency(task)


After = Source | OptionalDependency
Input = Output | Source
Named = Callable[[Source], str]


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
    if "key" in chosen:
        raise InvalidArgument(
            "a task of a DAG has no key of its own",
            hint="Its name is its key. Only the DAG can have a key: app.dag(…, key=…)",
            argument="key",
        )
    later = {
        each: given.pop(each) for each in list(given) if isinstance(given[each], Output | Node)
    }
    if twice := sorted((given.keys() | later.keys()) & (inputs or {}).keys()):
        raise InvalidArgument(f"{twice[0]} is both an argument and an input", argument=twice[0])
    references = {key: _reference(each, named) for key, each in {**later, **(inputs or {})}.items()}
    _refuse_hidden(given)
    if isinstance(what, str) and definition is None:
        queue, others, _ = make_options(chosen)
        made = {**others, "queue": queue, "type": what, "spec": given}
        if define := registry.define(what, queue):
            made["define"] = define
    else:
        assert definition is not None
        _check(definition, given, references)
        made = Call(definition, given, chosen).as_json(check=False)
    if name is not None:
        made["name"] = name
    if waits := [_edge(each, named) for each in _several(after)]:
        made["after"] = waits
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


def id_of(source: Source) -> str:
    """Return the reference of a task outside the DAG; a text may be a name inside it."""
    if isinstance(source, Node | Handle):
        return str(source.id)
    if isinstance(source, UUID | str):
        return str(source)
    raise InvalidArgument(
        f"{excerpt(source)} is not a task",
        hint="Pass a result of add(), a handle, an id or a name.",
    )


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


def _check(definition: Definition, given: dict[str, Any], references: Mapping[str, str]) -> None:
    """Check the known arguments, and that the handler takes those that come from inputs."""
    try:
        definition.arguments({**given, **dict.fromkeys(references)})
    except InvalidArgument as error:
        problems: Any = error.detail["errors"]
        left = [
            each
            for each in problems
            if each["field"].split(".")[0] not in references or each["problem"].startswith("Extra")
        ]
        if not left:
            return
        words = "; ".join(f"{each['field']}: {each['problem']}" for each in left)
        raise InvalidArgument(
            f"{definition.name} does not take these arguments: {words}",
            hint=error.hint,
            errors=left,
        ) from None


def _refuse_hidden(given: Mapping[str, Any]) -> None:
    """Raise if an argument contains an output, which could never be filled in."""
    waiting, seen = list(given.items()), set[int]()
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, Output | Node):
            raise InvalidArgument(
                f"{name} contains an output inside another value",
                hint="Pass the output as a whole argument: brief=node.output",
                argument=name,
            )
        if isinstance(value, dict | list | tuple) and id(value) not in seen:
            seen.add(id(value))
            inner = value.values() if isinstance(value, dict) else value
            waiting.extend((name, each) for each in inner)


def _several(after: After | Iterable[After]) -> Iterable[After]:
    if isinstance(after, Node | Handle | UUID | str | OptionalDependency):
        return [after]
    return after


def _edge(after: After, named: Named) -> str | dict[str, Any]:
    if isinstance(after, OptionalDependency):
        return {"task": named(after.of), "optional": True}
    return named(after)


def _reference(given: Input, named: Named) -> str:
    if isinstance(given, str):
        return given
    output = given if isinstance(given, Output) else Output(given)
    return f"task:{named(output.of)}:{output.part}"
