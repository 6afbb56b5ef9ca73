"""Which function handles which type, how its arguments are checked, and calls of tasks.

The type of a task is looked up in this table. Nothing in a payload is ever imported or executed. A
`Call` is a task with its arguments before it exists: what is spawned or added to a DAG.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NotRequired, Protocol, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

# pydantic needs this TypedDict before Python 3.12.
from typing_extensions import TypedDict

from treadle.errors import ConfigurationError, InvalidArgument
from treadle.fields import EnqueueOptions, make_options
from treadle.masking import excerpt_name
from treadle.worker.context import Context
from treadle.worker.validation import Validators

Handler = Callable[..., Any]
RESERVED = frozenset({"conn"})


class Definition:
    """One handler with its type name, its queue and the settings of its type."""

    def __init__(
        self, handler: Handler, *, name: str, queue: str, settings: Mapping[str, Any]
    ) -> None:
        self.handler = handler
        self.name = name
        self.queue = queue
        self.settings = dict(settings)
        self.is_async = inspect.iscoroutinefunction(handler)
        self.context_name: str | None = None
        self._adapter = self._adapter_of(handler)

    def arguments(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Check a spec against the signature; raise InvalidArgument naming each field."""
        if self._adapter is None:
            return dict(spec)
        try:
            return self._adapter.validate_python(spec)
        except ValidationError as error:
            problems = [
                {
                    "field": ".".join(excerpt_name(str(part)) for part in item["loc"]),
                    "problem": item["msg"],
                }
                for item in error.errors(include_url=False, include_input=False)
            ]
            words = "; ".join(f"{each['field']}: {each['problem']}" for each in problems)
            raise InvalidArgument(
                f"{self.name} does not take these arguments: {words}",
                hint=f"Its signature is {self.name}{inspect.signature(self.handler)}",
                errors=problems,
            ) from None

    def _adapter_of(self, handler: Handler) -> TypeAdapter[dict[str, Any]] | None:
        try:
            hints = get_type_hints(handler, include_extras=True)
        except Exception as error:
            raise ConfigurationError(
                f"the type hints of {self.name} cannot be resolved: {error}",
                hint="Import what the annotations name at the top of the module.",
            ) from error
        fields: dict[str, Any] = {}
        takes_any = False
        for parameter in inspect.signature(handler).parameters.values():
            hint = hints.get(parameter.name, Any)
            if hint is Context or (hint is Any and parameter.name == "ctx"):
                self.context_name = parameter.name
            elif parameter.kind is parameter.VAR_KEYWORD:
                takes_any = True
            elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                raise ConfigurationError(
                    f"{self.name} has the positional parameter {parameter.name}",
                    hint="Handlers get their arguments by name.",
                )
            elif parameter.name in RESERVED:
                raise ConfigurationError(
                    f"{self.name} cannot have a parameter named {parameter.name}",
                    hint="enqueue() takes it for itself; choose another name.",
                )
            else:
                has_default = parameter.default is not parameter.empty
                fields[parameter.name] = NotRequired[hint] if has_default else hint
        if takes_any and not fields:
            return None
        # The functional form, with a name and fields that are known only now.
        make_shape: Any = TypedDict
        shape = make_shape(f"{self.name}_arguments", fields)
        shape.__pydantic_config__ = ConfigDict(
            extra="allow" if takes_any else "forbid", arbitrary_types_allowed=True
        )
        return TypeAdapter(shape)


class Registry:
    """The definitions of an application, by type."""

    def __init__(self) -> None:
        self._by_name: dict[str, Definition] = {}
        self.validators = Validators()

    def add(self, definition: Definition) -> None:
        if definition.name in self._by_name:
            raise ConfigurationError(
                f"two handlers for the type {definition.name}",
                hint="Give one of them another name: @app.task('other_name')",
            )
        self._by_name[definition.name] = definition

    def get(self, name: str) -> Definition | None:
        return self._by_name.get(name)

    def names(self) -> list[str]:
        return sorted(self._by_name)

    def queues(self) -> list[str]:
        return sorted({definition.queue for definition in self._by_name.values()})

    def declaration(self) -> dict[str, dict[str, Any]]:
        """The types and their settings, as `treadle.declare_types` takes them."""
        return {name: definition.settings for name, definition in self._by_name.items()}


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
