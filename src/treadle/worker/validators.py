"""The validators that this code has: built in, or registered by the application.

A task names a validator and gives its settings. What runs is what is registered here under that
name: nothing from a payload is executed or imported, and no command line comes from one.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from anyio import CapacityLimiter
from pydantic_core import from_json

from treadle.errors import ConfigurationError, MissingExtra
from treadle.json import encode_safely
from treadle.settings import bare_environment
from treadle.worker.children import run_child
from treadle.worker.context import Context
from treadle.worker.failing import Refused
from treadle.worker.schemas import BadSchema, schema_check

BUILT_IN = ("json_schema", "regex", "test_pass", "none")
LIMIT_S = 120.0
OUTPUT_LIMIT = 16 * 1024
# SQL keeps 2000 characters of a message, the name of the validator included.
SHOWN = 1900
Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Command:
    """A program that judges an output by its exit code."""

    name: str
    arguments: tuple[str, ...]
    timeout_s: float | None = None
    output_limit: int = OUTPUT_LIMIT
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    async def messages(self, context: Context, output: bytes) -> list[str]:
        """Empty for exit code 0; else the code and the last that the program said."""
        task = context.task
        about = {"id": task.id, "type": task.type, "attempt": task.attempt, "spec": task.spec}
        finished = await run_child(
            self.arguments,
            stdin=b'{"output":%s,"task":%s}' % (output or b"null", encode_safely(about)),
            output_limit=self.output_limit,
            env=bare_environment(**self.env),
            cwd=self.cwd,
        )
        if finished.code == 0:
            return []
        ended = f"exit code {finished.code}" if finished.code > 0 else f"signal {-finished.code}"
        said = finished.output.decode(errors="replace").strip()
        if finished.dropped or len(said) > SHOWN:
            whole = finished.dropped + len(finished.output)
            said = f"…{said[-SHOWN:]} (of {whole} bytes)"
        return [f"{self.name} ended with {ended}", *([said] if said else [])]


@dataclass(frozen=True, slots=True)
class Check:
    """One validator with the settings of a task, ready to run."""

    name: str
    limit_s: float
    run: Callable[[Context, bytes], Awaitable[Sequence[str]]]


class Validators:
    """The validators and commands of an application, by name."""

    def __init__(self) -> None:
        self.limit_s = LIMIT_S
        self._functions: dict[str, Function] = {}
        self._commands: dict[str, Command] = {}

    def add(self, name: str, function: Function) -> None:
        if name in BUILT_IN or name in self._functions:
            raise ConfigurationError(
                f"there is a validator {name} already", hint="Give it another name."
            )
        if "output" not in inspect.signature(function).parameters:
            raise ConfigurationError(
                f"the validator {name} has no parameter named output",
                hint="def check(output, ctx): …; the settings of the task come by name.",
            )
        self._functions[name] = function

    def add_command(self, command: Command) -> None:
        words = command.arguments
        if not words or not all(isinstance(each, str) for each in words):
            raise ConfigurationError(
                f"the command {command.name} must be a list of words",
                hint='app.command("unit", ["pytest", "-q"])',
            )
        if command.name in self._commands:
            raise ConfigurationError(f"there is a command {command.name} already")
        self._commands[command.name] = command

    def prepare(
        self, validation: Sequence[Mapping[str, Any]], threads: CapacityLimiter
    ) -> list[Check]:
        """The checks that a task asks for; Refused where this code cannot do one of them."""
        return [
            self._check(dict(each), threads) for each in validation if each["validator"] != "none"
        ]

    def _check(self, settings: dict[str, Any], threads: CapacityLimiter) -> Check:
        name = str(settings.pop("validator"))
        limit_s = float(settings.pop("timeout_s", self.limit_s))
        if name in ("json_schema", "regex"):
            schema = settings.get("schema")
            if name == "regex":
                schema = {"type": "string", "pattern": settings["pattern"]}
            try:
                check = schema_check(schema)
            except (BadSchema, MissingExtra) as error:
                hint = f": {error.hint}" if isinstance(error, MissingExtra) else ""
                raise Refused(f"validator {name}: {error}{hint}") from None
            return Check(name, limit_s, lambda _, output: check.messages(output))
        if name == "test_pass":
            command = self._commands.get(settings["name"])
            if command is None:
                raise Refused(
                    f"validator test_pass: this worker has no command {settings['name']!r}; "
                    f"register it: app.command({settings['name']!r}, […])"
                )
            longest = self.limit_s if command.timeout_s is None else command.timeout_s
            return Check(f"{name} {command.name}", min(limit_s, longest), command.messages)
        function = self._functions.get(name)
        if function is None:
            raise Refused(
                f"this worker has no validator {name!r}; register it: @app.validator({name!r})"
            )
        return Check(name, limit_s, _bound(name, function, settings, threads))


def _bound(
    name: str, function: Function, settings: Mapping[str, Any], threads: CapacityLimiter
) -> Callable[[Context, bytes], Awaitable[Sequence[str]]]:
    """The function with the settings of a task; Refused when it does not take them."""
    signature = inspect.signature(function)
    wants_context = "ctx" in signature.parameters
    try:
        signature.bind(output=None, **settings, **({"ctx": None} if wants_context else {}))
    except TypeError as error:
        raise Refused(f"validator {name} does not take these settings: {error}") from None

    async def run(context: Context, output: bytes) -> Sequence[str]:
        given: dict[str, Any] = {**settings, "output": from_json(output) if output else None}
        if wants_context:
            given["ctx"] = context
        call = partial(function, **given)
        if inspect.iscoroutinefunction(function):
            result = await call()
        else:
            result = await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=threads)
        return _messages(name, await result if inspect.isawaitable(result) else result)

    return run


def _messages(name: str, result: object) -> Sequence[str]:
    """What a validator has to say: nothing or True is a pass."""
    if result is None or result is True:
        return []
    if result is False:
        return [f"refused by {name}"]
    if isinstance(result, str):
        return [result] if result else []
    if isinstance(result, (list, tuple)) and all(isinstance(each, str) for each in result):
        return list(result)
    raise TypeError(
        f"it returned {type(result).__name__}: return None or True for a pass, False, a message "
        "or a list of messages for a refusal"
    )
