"""Validate the output of a task before the task is completed.

The task is `validating` meanwhile, keeps its claim and sends heartbeats. Validators run in the
order in which the task names them. The first that rejects the output ends the attempt as
`invalid_output`, and the next attempt gets its messages. A task names a validator and passes
settings; the code that runs is the function or command registered under that name. Nothing from a
payload is executed or imported.

A JSON schema of a task must not block the worker. The checker holds the GIL while it runs, and a
schema of a few lines can take forever: definitions that refer to each other twice. So the cost of a
schema is estimated first. A schema that is cheap for the size of the output is checked here, in
microseconds. Any other is checked in a child process, which is killed after the timeout.
"""

import inspect
import json
import math
import random
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio
import structlog
from anyio import CapacityLimiter
from pydantic import ValidationError
from pydantic_core import from_json

from treadle.db.database import Database
from treadle.errors import ClaimLost, ConfigurationError, MissingExtra, Unavailable, extra
from treadle.json import clean_text, encode_safely
from treadle.masking import excerpt_name
from treadle.models import Claim, Failure
from treadle.settings import bare_environment
from treadle.worker.child_process import run_child
from treadle.worker.context import Context
from treadle.worker.json_schema_child import compiled, messages_of, shortened
from treadle.worker.outcomes import (
    InvalidOutput,
    Outcome,
    Refused,
    failure_of,
    flatten_errors,
    report_missing,
)

if TYPE_CHECKING:
    from treadle.worker.executor import RunningTask
    from treadle.worker.registry import Definition

# Weight of the schema times bytes of the output: a few hundredths of a second.
LIGHT = 20_000_000
LEAST_BYTES = 100
CHILD = (sys.executable, "-I", "-m", "treadle.worker.json_schema_child")
CHILD_OUTPUT = 1024 * 1024
# Keywords whose cost depends on more than the size of the schema.
_BOUNDLESS = frozenset(
    {"$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems", "$id", "$anchor"}
)
BUILT_IN = ("json_schema", "output_type", "regex", "returns", "test_pass", "none")
NAMES = (*BUILT_IN, "llm_judge")
LIMIT_S = 120.0
OUTPUT_LIMIT = 16 * 1024
# SQL keeps 2000 characters of a message, the name of the validator included.
SHOWN = 1900
ValidatorFunction = Callable[..., Any]
log = structlog.get_logger(__name__)


class BadSchema(ValueError):
    """The schema cannot be used; the message says why."""


class SchemaCheck:
    """One prepared schema."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.weight = schema_cost(json.loads(text))
        self._compiled: Any = None
        if self.weight * LEAST_BYTES <= LIGHT:
            try:
                self._compiled = compiled(json.loads(text))
            except ValueError as error:
                raise BadSchema(shortened(str(error).partition("\n\n")[0])) from None

    async def messages(self, output: bytes) -> list[str]:
        """Return the errors of an output; empty if it is valid."""
        output = output or b"null"
        if self.weight * (LEAST_BYTES + len(output)) <= LIGHT:
            return messages_of(self._compiled, from_json(output))
        finished = await run_child(
            CHILD,
            stdin=b'{"schema":%s,"output":%s}' % (self.text.encode(), output),
            output_limit=CHILD_OUTPUT,
            env=bare_environment(),
        )
        if finished.code != 0:
            said = finished.output[-500:].decode(errors="replace")
            raise RuntimeError(f"the check ended with {finished.code}: {said}")
        answer = from_json(finished.output)
        if "problem" in answer:
            raise BadSchema(answer["problem"])
        found: list[str] = answer["messages"]
        return found


def schema_check(schema: Any) -> SchemaCheck:
    """Return the check of a schema, cached by its text."""
    with extra("schema", "the validators json_schema and regex need jsonschema-rs"):
        import_module("jsonschema_rs")
    return _made(json.dumps(schema, sort_keys=True))


@lru_cache(maxsize=256)
def _made(text: str) -> SchemaCheck:
    return SchemaCheck(text)


def schema_cost(schema: Any) -> float:
    """Return the number of parts of a schema with references expanded; infinite if unknown."""
    try:
        return _weight(schema, schema, {})
    except RecursionError:
        return math.inf


def _weight(part: Any, root: Any, known: dict[str, float]) -> float:
    if isinstance(part, list):
        return 1 + sum(_weight(each, root, known) for each in part)
    if not isinstance(part, dict):
        return 1
    total = 1.0
    for key, value in part.items():
        if key in _BOUNDLESS:
            return math.inf
        if key == "$ref" and isinstance(value, str):
            total += _referred(value, root, known)
        elif key == "pattern" and isinstance(value, str):
            total += pattern_weight(value)
        elif key == "patternProperties" and isinstance(value, dict):
            total += sum(pattern_weight(name) for name in value)
        total += _weight(value, root, known)
    return total


def _referred(reference: str, root: Any, known: dict[str, float]) -> float:
    """Return the weight of a definition; infinite if it refers to itself."""
    if reference not in known:
        known[reference] = math.inf
        found: Any = root
        for step in reference.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            found = found.get(step) if isinstance(found, dict) else None
        if not reference.startswith("#/") or found is None:
            return math.inf
        known[reference] = _weight(found, root, known)
    return known[reference]


def pattern_weight(pattern: str) -> float:
    """Return the worst cost per character of a text for a linear engine."""
    counted = re.findall(r"\{(\d*),?(\d*)\}", pattern)
    times = math.prod(max(1.0, float(low[:9] or 0), float(high[:9] or 0)) for low, high in counted)
    return 4 * len(pattern) * times


@dataclass(frozen=True, slots=True)
class ValidatorCommand:
    """A program that accepts or rejects an output by its exit code."""

    name: str
    arguments: tuple[str, ...]
    timeout_s: float | None = None
    output_limit: int = OUTPUT_LIMIT
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    async def messages(self, context: Context, output: bytes) -> list[str]:
        """Return no messages for exit code 0, else the code and the end of the program's output."""
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
        self._functions: dict[str, ValidatorFunction] = {}
        self._commands: dict[str, ValidatorCommand] = {}

    def add(self, name: str, function: ValidatorFunction) -> None:
        if (word := name.lower().replace("-", "_")) in NAMES:
            # SQL stores the built-in names in this form only.
            name = word
        if name in BUILT_IN or name in self._functions:
            raise ConfigurationError(
                f"there is already a validator {name}", hint="Choose another name."
            )
        if "output" not in inspect.signature(function).parameters:
            raise ConfigurationError(
                f"the validator {name} has no parameter named output",
                hint="def check(output, ctx): …; settings of the task are keyword arguments.",
            )
        self._functions[name] = function

    def add_command(self, command: ValidatorCommand) -> None:
        words = command.arguments
        if not words or not all(isinstance(each, str) for each in words):
            raise ConfigurationError(
                f"the arguments of command {command.name} must be a list of strings",
                hint='For example: app.command("unit", ["pytest", "-q"])',
            )
        if command.name in self._commands:
            raise ConfigurationError(
                f"there is already a command {command.name}", hint="Choose another name."
            )
        self._commands[command.name] = command

    def prepare(
        self,
        validation: Sequence[Mapping[str, Any]],
        threads: CapacityLimiter,
        definition: "Definition",
    ) -> list[Check]:
        """Return the checks of a task; raise Refused if this worker cannot run one of them."""
        return [
            self._check(dict(each), threads, definition)
            for each in validation
            if each["validator"] != "none"
        ]

    def _check(
        self, settings: dict[str, Any], threads: CapacityLimiter, definition: "Definition"
    ) -> Check:
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
        if name == "returns":
            return Check(name, limit_s, _returns_check(definition))
        if name == "output_type":
            output_type = str(settings.get("type"))
            return Check(name, limit_s, partial(_check_output_type, output_type))
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


def _returns_check(
    definition: "Definition",
) -> Callable[[Context, bytes], Awaitable[Sequence[str]]]:
    """Return a check against the return annotation; raise Refused if there is none to use."""
    try:
        adapter = definition.return_adapter
    except Exception as error:
        problem = str(error).partition("\n")[0]
        raise Refused(f"validator returns: the annotation cannot be checked: {problem}") from None
    if adapter is None:
        raise Refused(f"validator returns: {definition.name} has no return annotation")

    async def check(_: Context, output: bytes) -> Sequence[str]:
        try:
            adapter.validate_json(output or b"null", strict=True)
        except ValidationError as error:
            return [
                f"{'.'.join(excerpt_name(str(part)) for part in each['loc']) or 'output'}: "
                f"{each['msg']}"
                for each in error.errors(include_url=False, include_input=False)
            ]
        return []

    return check


async def _check_output_type(output_type: str, _: Context, output: bytes) -> list[str]:
    """Check that an output is of its declared kind; the text of code and markdown is not parsed."""
    value = from_json(output) if output else None
    match output_type:
        case "code" | "markdown":
            is_right, expected = isinstance(value, str) and value.strip() != "", "text"
        case "json":
            is_right, expected = isinstance(value, dict | list), "an object or a list"
        case "artifact":
            found = value if isinstance(value, list) else [value]
            is_right, expected = bool(found) and all(map(_is_artifact, found)), "an artifact"
        case _:
            raise Refused(f"this worker does not know the output type {output_type!r}")
    return [] if is_right else [f"an output of type {output_type} must be {expected}"]


def _is_artifact(value: object) -> bool:
    """Whether this is what `ctx.artifact.put` returns, or a reference like artifact:<id>."""
    if isinstance(value, dict):
        return {"id", "name", "uri"} <= value.keys()
    return isinstance(value, str) and value.startswith("artifact:")


def _bound(
    name: str, function: ValidatorFunction, settings: Mapping[str, Any], threads: CapacityLimiter
) -> Callable[[Context, bytes], Awaitable[Sequence[str]]]:
    """Bind a function to the settings of a task; raise Refused if it does not take them."""
    signature = inspect.signature(function)
    wants_context = "ctx" in signature.parameters
    try:
        signature.bind(output=None, **settings, **({"ctx": None} if wants_context else {}))
    except TypeError as error:
        raise Refused(f"validator {name} does not take these settings: {error}") from None

    async def run(context: Context, output: bytes) -> Sequence[str]:
        arguments: dict[str, Any] = {**settings, "output": from_json(output) if output else None}
        if wants_context:
            arguments["ctx"] = context
        call = partial(function, **arguments)
        if inspect.iscoroutinefunction(function):
            result = await call()
        else:
            result = await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=threads)
        return _messages(name, await result if inspect.isawaitable(result) else result)

    return run


def _messages(name: str, result: object) -> Sequence[str]:
    """Return the messages in the result of a validator; none if it accepts the output."""
    if result is None or result is True:
        return []
    if result is False:
        return [f"rejected by {name}"]
    if isinstance(result, str):
        return [result] if result else []
    if isinstance(result, (list, tuple)) and all(isinstance(each, str) for each in result):
        return list(result)
    raise TypeError(
        f"it returned {type(result).__name__}: return None or True to accept the output, or "
        "False, a message or a list of messages to reject it"
    )


class Validation:
    """Runs the validators of claims."""

    def __init__(self, validators: Validators, db: Database, threads: CapacityLimiter) -> None:
        self._validators = validators
        self._db = db
        self._threads = threads

    def prepare(self, claim: Claim, definition: "Definition") -> Sequence[Check]:
        """Return the checks of a claim; raise Refused if this worker cannot run one of them."""
        if not claim.validation:
            return ()
        return self._validators.prepare(claim.validation, self._threads, definition)

    async def validate(
        self, running: "RunningTask", checks: Sequence[Check], output: bytes
    ) -> bytes | Failure | None:
        """Return the output if all checks pass, else the failure; None if the claim is lost."""
        context = running.context
        if running.claim.report and context.decision_report is None:
            return report_missing()
        if not checks:
            return output
        if not await self._begin(running):
            return None
        for check in checks:
            failure = await self._run(running, check, output)
            if failure is not None:
                return failure
        return output

    async def _begin(self, running: "RunningTask") -> bool:
        """Mark the task as validating; retry while the database is unavailable."""
        claim, delay = running.claim, 0.05
        while True:
            try:
                verdicts = await self._db.claims.validate([(claim.id, claim.token)])
                break
            except Unavailable as error:
                log.warning("validation.call_failed", task_id=str(claim.id), error=str(error))
                await anyio.sleep(random.uniform(delay / 2, delay))
                delay = min(delay * 2, 5.0)
        running.started = True
        verdict = verdicts.get(claim.id, "lost")
        if verdict != "ok":
            running.stop_reason = verdict
            running.context.cancel(verdict)
        return verdict == "ok"

    async def _run(self, running: "RunningTask", check: Check, output: bytes) -> Failure | None:
        messages: Sequence[str] = ()
        try:
            with anyio.move_on_after(check.limit_s) as scope:
                messages = await check.run(running.context, output)
        except (Outcome, ClaimLost):
            raise
        except BadSchema as error:
            return Refused(f"validator {check.name}: {error}").failure()
        except (Exception, SystemExit) as error:
            if any(isinstance(each, (ClaimLost, Outcome)) for each in flatten_errors(error)):
                raise
            crash = failure_of(error)
            return replace(crash, error=f"validator {check.name} crashed: {crash.error}")
        if scope.cancelled_caught:
            return Failure(
                f"validator {check.name} took longer than {check.limit_s:g} s", "timeout"
            )
        if not messages:
            return None
        failure = InvalidOutput(*(f"{check.name}: {each}" for each in messages)).failure()
        return replace(failure, error=clean_text("\n".join(failure.feedback)))
