"""The handlers of an application by task type, and the checks of their arguments.

The type of a task is looked up in this table; nothing from a payload is imported or executed. A
`Call` is a handler with its arguments, to spawn or to add to a DAG.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    Never,
    NoReturn,
    NotRequired,
    Protocol,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

# pydantic needs this TypedDict before Python 3.12.
from typing_extensions import TypedDict, is_typeddict

from treadle.errors import ConfigurationError, InvalidArgument
from treadle.fields import EnqueueOptions
from treadle.masking import excerpt_name
from treadle.worker.context import Context
from treadle.worker.references import (
    Output,
    TaskReference,
    make_edges,
    make_references,
    merge_inputs,
    split_outputs,
)
from treadle.worker.validation import Validators

Handler = Callable[..., Any]
RESERVED = frozenset({"conn"})


class Definition:
    """A handler with the name, the default queue and the settings of its type."""

    def __init__(
        self, handler: Handler, *, name: str, queue: str, settings: Mapping[str, Any]
    ) -> None:
        self.handler = handler
        self.name = name
        self.queue = queue
        self.settings = dict(settings)
        self.is_async = inspect.iscoroutinefunction(handler)
        self.context_name: str | None = None
        # The queues that the application declares; the registry shares its own.
        self.declared_queues: Collection[str] = ()
        self._adapter = self._adapter_of(handler)

    def define(self, queue: str) -> dict[str, Any]:
        """Return what SQL needs to create the type, and the queue if the code declares it."""
        settings = {name: value for name, value in self.settings.items() if value is not None}
        return {"type": settings, **define_queue(queue, self.declared_queues)}

    @cached_property
    def return_adapter(self) -> TypeAdapter[Any] | None:
        """Checks return values; None without an annotation, an error if it cannot be used."""
        hints = get_type_hints(self.handler, include_extras=True)
        if "return" not in hints:
            return None
        try:
            return TypeAdapter(hints["return"])
        except PydanticUserError:
            # Classes without a form in JSON, such as outcomes next to the type of the output.
            return TypeAdapter(hints["return"], config=ConfigDict(arbitrary_types_allowed=True))

    def arguments(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Validate a spec against the signature; InvalidArgument names each wrong field."""
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
                hint=f"The signature is {self._shown_signature()}",
                errors=problems,
            ) from None

    def split(
        self, arguments: Mapping[str, Any], options: EnqueueOptions
    ) -> tuple[Mapping[str, Any], EnqueueOptions]:
        """Check the arguments; return them and the options, with outputs of tasks as inputs."""
        given, options = split_inputs(arguments, options)
        if "inputs" in options:
            self.check(given, options["inputs"])
        else:
            self.arguments(given)
        return given, options

    def check(self, given: Mapping[str, Any], inputs: Collection[str]) -> None:
        """Check the known arguments, and that the handler takes those that come from inputs."""
        try:
            self.arguments({**given, **dict.fromkeys(inputs)})
        except InvalidArgument as error:
            problems: Any = error.detail["errors"]
            left = [
                each
                for each in problems
                if each["field"].split(".")[0] not in inputs or each["problem"].startswith("Extra")
            ]
            if not left:
                return
            words = "; ".join(f"{each['field']}: {each['problem']}" for each in left)
            raise InvalidArgument(
                f"{self.name} does not take these arguments: {words}", hint=error.hint, errors=left
            ) from None

    def named(self, values: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return positional and named arguments by name."""
        signature = inspect.signature(self.handler)
        names = [name for name in signature.parameters if name != self.context_name]
        given = dict(zip(names, values, strict=False))
        twice = sorted(given.keys() & arguments.keys())
        if twice or len(values) > len(names):
            problem = f"{twice[0]} is given twice" if twice else "there are too many arguments"
            raise InvalidArgument(
                f"{self.name} does not take these arguments: {problem}",
                hint=f"The signature is {self._shown_signature()}",
            )
        return {**given, **arguments}

    def _shown_signature(self) -> str:
        """Return the signature as producers call it, with the short names of classes."""
        found = inspect.signature(self.handler)
        parameters = [each for each in found.parameters.values() if each.name != self.context_name]
        return self.name + re.sub(
            r"\b(?:\w+\.)+(\w+)", r"\1", str(found.replace(parameters=parameters))
        )

    def output(self, value: Any) -> Any:
        """Convert an output, which is JSON, to the type that the handler returns."""
        if self._returns is None:
            return value
        assert self.return_adapter is not None
        try:
            return self.return_adapter.validate_python(value)
        except ValidationError as error:
            raise InvalidArgument(
                f"the output of {self.name} is not what the handler returns: "
                f"{error.errors(include_url=False, include_input=False)[0]['msg']}",
                hint=f"It was stored by other code. The handler returns {self._returns!r}.",
            ) from None

    def _adapter_of(self, handler: Handler) -> TypeAdapter[dict[str, Any]] | None:
        try:
            hints = get_type_hints(handler, include_extras=True)
        except Exception as error:
            raise ConfigurationError(
                f"the type hints of {self.name} cannot be resolved: {error}",
                hint="Import the names used in annotations at the top of the module.",
            ) from error
        returns = hints.get("return")
        self._returns = None if returns is None or _is_json(returns) else returns
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
                    hint="Handlers are called with keyword arguments only.",
                )
            elif parameter.name in RESERVED:
                raise ConfigurationError(
                    f"{self.name} cannot have a parameter named {parameter.name}",
                    hint="enqueue() has a parameter of this name; choose another one.",
                )
            else:
                has_default = parameter.default is not parameter.empty
                fields[parameter.name] = NotRequired[hint] if has_default else hint
        if takes_any and not fields:
            return None
        # The functional form of TypedDict, which mypy accepts only with literal fields.
        make_typed_dict: Any = TypedDict
        arguments = make_typed_dict(f"{self.name}_arguments", fields)
        arguments.__pydantic_config__ = ConfigDict(
            extra="allow" if takes_any else "forbid", arbitrary_types_allowed=True
        )
        return TypeAdapter(arguments)


def _is_json(hint: Any) -> bool:
    """Return whether values of a type are the same before and after they were JSON."""
    origin = get_origin(hint)
    if origin in (dict, list, Union, UnionType):
        return all(map(_is_json, get_args(hint)))
    return (
        hint in (Any, object, None, NoneType, Never, NoReturn, str, int, float, bool, dict, list)
        or origin is Literal
        or is_typeddict(hint)
    )


class Registry:
    """The definitions of an application, by type."""

    def __init__(self) -> None:
        self._by_name: dict[str, Definition] = {}
        # Queues that are created if they are missing: `app.queue("mail")`.
        self.declared_queues: set[str] = set()
        self.validators = Validators()

    def add(self, definition: Definition) -> None:
        if definition.name in self._by_name:
            raise ConfigurationError(
                f"the type {definition.name} has two handlers",
                hint="Give one of them another name: @app.task('other_name')",
            )
        self._by_name[definition.name] = definition
        definition.declared_queues = self.declared_queues

    def get(self, name: str) -> Definition | None:
        return self._by_name.get(name)

    def names(self) -> list[str]:
        return sorted(self._by_name)

    def queues(self) -> list[str]:
        """Return the queues that the types use by default."""
        return sorted({definition.queue for definition in self._by_name.values()})

    def define(self, type: str, queue: str) -> dict[str, Any]:
        """Return what SQL needs to create the type and the queue, as far as the code has them."""
        definition = self.get(type)
        return (
            define_queue(queue, self.declared_queues)
            if definition is None
            else definition.define(queue)
        )

    def declaration(self) -> dict[str, dict[str, Any]]:
        """Return the types and their settings for `treadle.declare_types`."""
        return {name: definition.settings for name, definition in self._by_name.items()}


class Call:
    """A handler with arguments and the options of the task to create."""

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
        """Return the call itself; more arguments are an error."""
        if arguments:
            raise InvalidArgument(
                f"{self!r} already has its arguments",
                hint="Pass all arguments to task.call(…), or pass the task and its arguments.",
                argument=next(iter(arguments)),
            )
        return self

    def as_json(self, *, check: bool = True) -> dict[str, Any]:
        """Return the task document for SQL; `check=False` if inputs will add arguments."""
        spec: Mapping[str, Any] = self.arguments
        chosen: EnqueueOptions = {"queue": self.definition.queue, **self.options}
        if check:
            spec, chosen = self.definition.split(self.arguments, chosen)
        queue, options, key = make_options(chosen)
        if key is not None:
            options["idempotency_key"] = key
        options["define"] = self.definition.define(queue)
        return {**options, "queue": queue, "type": self.definition.name, "spec": spec}


def split_inputs(
    arguments: Mapping[str, Any], options: EnqueueOptions
) -> tuple[Mapping[str, Any], EnqueueOptions]:
    """Return the known arguments and the options, with outputs of other tasks as inputs."""
    if "inputs" not in options and not any(
        isinstance(each, Output | TaskReference) for each in arguments.values()
    ):
        return arguments, options
    given, outputs = split_outputs(arguments)
    inputs = options.get("inputs")
    if outputs or inputs is not None:
        options = {**options, "inputs": merge_inputs(given, outputs, inputs)}
    return given, options


def define_queue(queue: str, declared: Collection[str]) -> dict[str, Any]:
    """Return what SQL needs to create a queue that the code declares."""
    return {"queue": True} if queue in declared else {}


def make_options(options: EnqueueOptions) -> tuple[str, dict[str, Any], str | None]:
    """Split options into the queue, what goes to SQL as json, and the idempotency key."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    queue = str(given.pop("queue", "default"))
    key = given.pop("key", None)
    delay = given.pop("delay", None)
    if delay is not None:
        given["delay_s"] = delay.total_seconds() if isinstance(delay, timedelta) else delay
    if "after" in given:
        given["after"] = make_edges(given["after"])
    if "inputs" in given:
        given["inputs"] = make_references(given["inputs"])
    for name, value in given.items():
        if isinstance(value, datetime) and value.tzinfo is None:
            raise InvalidArgument(
                f"{name} has no time zone", hint="Use datetime.now(tz=UTC) + …", argument=name
            )
    return queue, given, key


class Enqueueable(Protocol):
    """A declared task, or a call of one."""

    def call(self, /, **arguments: Any) -> Call: ...
