"""References to other tasks: what a task depends on, and which of its arguments are their outputs.

Names of tasks in a DAG that is being built are not known here: `named` returns them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from treadle.errors import InvalidArgument
from treadle.masking import excerpt, excerpt_name


class TaskReference(ABC):
    """A task that others can depend on; its output and its files can be their arguments."""

    __slots__ = ()

    @property
    @abstractmethod
    def id(self) -> UUID:
        """The id of the task."""

    # Any: for a type checker these stand for the arguments that they will become.
    @property
    def output(self) -> Any:
        """The output as an argument of a later task; `task.output["title"]` is a part of it."""
        return Output(self)

    def artifact(self, name: str) -> Any:
        """Return a file that the task will store, as an argument of a later task."""
        return ArtifactOutput(self, name)


Source = TaskReference | UUID | str


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


def id_of(source: Source) -> str:
    """Return the reference of a task outside the DAG; a text may be a name inside it."""
    if isinstance(source, TaskReference):
        return str(source.id)
    if isinstance(source, UUID | str):
        return str(source)
    raise InvalidArgument(
        f"{excerpt(source)} is not a task",
        hint="Pass a result of add() or enqueue(), an id, or the name of a task of the DAG.",
    )


def make_edges(
    after: After | Mapping[str, Any] | Iterable[After | Mapping[str, Any]], named: Named = id_of
) -> list[Any]:
    """Return dependencies for SQL; those that are written for SQL already are kept."""
    if isinstance(after, TaskReference | UUID | str | OptionalDependency | Mapping):
        after = [after]
    return [_edge(each, named) for each in after]


def make_references(inputs: Mapping[str, Input], named: Named = id_of) -> dict[str, str]:
    """Return inputs for SQL; a text is a reference already."""
    return {name: _reference(each, named) for name, each in inputs.items()}


def split_outputs(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Input]]:
    """Return the arguments that are known, and those that are outputs of other tasks."""
    given: dict[str, Any] = {}
    outputs: dict[str, Input] = {}
    for name, value in arguments.items():
        (outputs if isinstance(value, Output | TaskReference) else given)[name] = value
    return given, outputs


def merge_inputs(
    given: Mapping[str, Any], outputs: Mapping[str, Input], inputs: Mapping[str, Input] | None
) -> dict[str, Input]:
    """Return all inputs of a task; raise if one of them is an argument as well."""
    if twice := sorted((given.keys() | outputs.keys()) & (inputs or {}).keys()):
        raise InvalidArgument(f"{twice[0]} is both an argument and an input", argument=twice[0])
    _refuse_hidden(given)
    return {**outputs, **(inputs or {})}


def _refuse_hidden(given: Mapping[str, Any]) -> None:
    """Raise if an argument contains an output, which could never be filled in."""
    waiting, seen = list(given.items()), set[int]()
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, Output | TaskReference):
            raise InvalidArgument(
                f"{name} contains an output inside another value",
                hint="Pass the output as a whole argument: brief=node.output",
                argument=name,
            )
        if isinstance(value, dict | list | tuple) and id(value) not in seen:
            seen.add(id(value))
            inner = value.values() if isinstance(value, dict) else value
            waiting.extend((name, each) for each in inner)


def _edge(after: After | Mapping[str, Any], named: Named) -> Any:
    if isinstance(after, Mapping):
        return after
    if isinstance(after, OptionalDependency):
        return {"task": named(after.of), "optional": True}
    return named(after)


def _reference(given: Input, named: Named) -> str:
    if isinstance(given, str):
        return given
    output = given if isinstance(given, Output) else Output(given)
    return f"task:{named(output.of)}:{output.part}"
