"""A task and its arguments, before it exists: what is spawned or added to a DAG."""

from collections.abc import Mapping
from typing import Any, Protocol

from treadle.errors import InvalidArgument
from treadle.fields import EnqueueOptions, make_options
from treadle.worker.registry import Definition


class Call:
    """A handler, the arguments for it, and the options of the task it will be."""

    __slots__ = ("arguments", "definition", "options")

    def __init__(
        self, definition: Definition, arguments: Mapping[str, Any], options: EnqueueOptions
    ) -> None:
        self.definition = definition
        self.arguments = dict(arguments)
        self.options = options

    def __repr__(self) -> str:
        return f"<Call {self.definition.name}>"

    def call(self, /, **arguments: Any) -> "Call":
        """Itself: a call has its arguments."""
        if arguments:
            raise InvalidArgument(
                f"{self!r} has its arguments already",
                hint="Give them to task.call(…), or give the task itself.",
                argument=next(iter(arguments)),
            )
        return self

    def as_json(self, *, check: bool = True) -> dict[str, Any]:
        """The task as SQL takes it; `check=False` when arguments are still to come as inputs."""
        if check:
            self.definition.arguments(self.arguments)
        queue, options, _ = make_options(
            {"queue": self.definition.queue, **self.options}, 1, self.definition.settings
        )
        return {**options, "queue": queue, "type": self.definition.name, "spec": self.arguments}


class Enqueueable(Protocol):
    """A declared task, or a call of one: anything that can make a call of itself."""

    def call(self, /, **arguments: Any) -> Call: ...
