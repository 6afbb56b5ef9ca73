"""Steps, which a task runs once and saves, and durable sleeps.

The input of a step is compared by the SHA-256 of its canonical JSON. A value that JSON cannot
represent, such as a client, is replaced by the name of its type.
"""

import dataclasses
import hashlib
import inspect
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import PurePath
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import anyio
import structlog
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from treadle.errors import InvalidArgument, StepConflict, TooLarge, TreadleError
from treadle.json import MAX_DEPTH, clean_text, encode_safely
from treadle.models import Step
from treadle.worker.journal import (
    MAX_BYTES,
    CurrentStep,
    Journal,
    SuspendReason,
    check_step_name,
    current_step,
    shorten,
)
from treadle.worker.spend import Spend

MAX_SHOWN = 500
_WRITABLE = (UUID, date, time_of_day, timedelta, Decimal, PurePath)
log = structlog.get_logger(__name__)
MAX_STEP_BYTES = 16 * 1024 * 1024


class Input(NamedTuple):
    """The hash of an input and its first characters; both are None if it is not compared."""

    hash: str | None
    shown: str | None


def input_of_call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Input:
    """Return the input for the arguments of a call."""
    plain = {"args": [_plain(each, 0) for each in args], "kwargs": _plain(kwargs, 0)}
    words = [
        *map(_canonical, plain["args"]),
        *(f"{name}={_canonical(value)}" for name, value in sorted(plain["kwargs"].items())),
    ]
    return Input(_hash(_canonical(plain)), clean_text(", ".join(words)[:MAX_SHOWN]))


def input_of_key(key: object) -> Input:
    """Return the input for a step key; None turns the comparison off."""
    if key is None:
        return Input(None, None)
    text = _canonical(_plain(key, 0))
    return Input(_hash(text), clean_text(text[:MAX_SHOWN]))


def _canonical(plain: object) -> str:
    return json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _plain(value: Any, depth: int) -> Any:
    """Convert a value to types that JSON has."""
    if value is None or (isinstance(value, (bool, int, float)) and not isinstance(value, Enum)):
        return value
    if depth > MAX_DEPTH:
        return _type(value)
    if isinstance(value, Enum):
        return _plain(value.value, depth + 1)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": hashlib.sha256(value).hexdigest()}
    if isinstance(value, _WRITABLE):
        return to_jsonable_python(value)
    if isinstance(value, BaseModel):
        return _plain(dict(value), depth + 1)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value)]
        return _plain({name: getattr(value, name) for name in names}, depth + 1)
    if isinstance(value, Mapping):
        return {str(_plain(key, depth + 1)): _plain(value[key], depth + 1) for key in value}
    if isinstance(value, (list, tuple)):
        return [_plain(each, depth + 1) for each in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(each, depth + 1) for each in value), key=_canonical)
    return _type(value)


def _type(value: object) -> str:
    return f"<{type(value).__name__}>"


class Steps:
    """Runs the steps of one attempt.

    The calls of one name are numbered in order: fetch, fetch#2, fetch#3. A call that raised keeps
    its number for the next call with the same input, so that a retry within the handler and the
    same retry in a later attempt find the same step.
    """

    def __init__(self, journal: Journal, spend: Spend) -> None:
        self._journal = journal
        self._spend = spend
        # By the name that the handler passed.
        self._running: dict[str, str] = {}
        self._calls: dict[str, int] = {}
        self._used: set[str] = set()
        self._failed: dict[tuple[str, str | None], str] = {}
        self._clock: tuple[datetime, float] | None = None

    async def step(
        self,
        name: str,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        step_key: Any,
    ) -> Any:
        """Return the saved result of a step; call `fn` only if there is none."""
        check_step_name(name)
        _check_function(name, fn)
        step_input = input_of_call(args, kwargs) if step_key is ... else input_of_key(step_key)
        self._check_running(name)
        numbered = self._number(name, step_input)
        self._running[name] = numbered
        try:
            if numbered not in self._journal.steps:
                await self._run(numbered, partial(fn, *args, **kwargs), step_input)
            await self._spend.enforce()
            self._journal.check()
            saved = self._journal.steps[numbered]
            _compare(saved, step_input)
        except BaseException:
            self._failed[name, step_input.hash] = numbered
            raise
        finally:
            del self._running[name]
        # A copy: a handler that modifies the result must not change what ctx.steps returns.
        return deepcopy(saved.output)

    def _number(self, name: str, step_input: Input) -> str:
        """Return the name to save a call under, with a number from the second call on."""
        failed = self._failed.pop((name, step_input.hash), None)
        if failed is not None:
            return failed
        number = self._calls.get(name, 0) + 1
        numbered = name if number == 1 else _with_number(name, number)
        while numbered in self._used:
            number += 1
            numbered = _with_number(name, number)
        self._calls[name] = number
        self._used.add(numbered)
        return numbered

    async def _run(self, name: str, call: Callable[[], Any], step_input: Input) -> None:
        journal = self._journal
        async with journal.busy():
            started = time.monotonic()
            current = CurrentStep(journal, name, journal.current())
            try:
                try:
                    output = _encoded(name, await _result(call, current))
                finally:
                    current.over = True
                await self._save(current, output, step_input, started)
            except BaseException:
                await self._record_failed(current)
                raise

    async def _save(
        self, step: CurrentStep, output: bytes, step_input: Input, started: float
    ) -> None:
        journal, claim = self._journal, self._journal.claim
        step.calls = _numbered(step)
        try:
            saved, verdict = await journal.call(
                lambda: journal.db.steps.save(
                    claim.id,
                    claim.token,
                    step.name,
                    output,
                    input_hash=step_input.hash,
                    shown=step_input.shown,
                    took_s=time.monotonic() - started,
                    calls=step.calls,
                )
            )
        except InvalidArgument as error:
            raise type(error)(
                f"the result of step {step.name} cannot be stored: {error}",
                hint=error.hint,
                **{**error.detail, "step": step.name},
            ) from error
        self._spend.set_verdict(verdict)
        journal.add(
            step.name,
            "step",
            saved,
            cost_usd=sum(call["usd"] for call in step.calls),
            input_hash=step_input.hash,
            input=step_input.shown,
        )

    async def _record_failed(self, step: CurrentStep) -> None:
        """Record the costs of a failed step; another run of the step adds its own."""
        calls = [{**call, "call_id": call["call_id"] or str(uuid4())} for call in step.calls]
        if not calls:
            return
        claim = self._journal.claim
        try:
            with anyio.move_on_after(5, shield=True):
                await self._journal.db.budgets.record(claim.id, claim.token, calls)
        except TreadleError as error:
            log.warning("spend.record_failed", task_id=str(claim.id), error=str(error), calls=calls)

    async def sleep(self, duration: float | timedelta, name: str | None) -> None:
        """Release the claim for a duration; the end is saved, by the clock of the database."""
        journal, claim = self._journal, self._journal.claim
        journal.forbid_in_step("sleep")
        seconds = duration.total_seconds() if isinstance(duration, timedelta) else float(duration)
        if not math.isfinite(seconds):
            raise InvalidArgument(f"cannot sleep for {seconds} seconds", argument="seconds")
        step = journal.name("sleep", name or f"{seconds:g}s")
        if step not in journal.steps:
            async with journal.busy():
                output = await journal.call(
                    lambda: journal.db.steps.save_sleep(claim.id, claim.token, step, seconds)
                )
                journal.add(step, "sleep", output)
        until = datetime.fromisoformat(journal.steps[step].output["until"])
        if await self._now() < until:
            await journal.suspend(SuspendReason(until=until))
        journal.check()

    async def _now(self) -> datetime:
        """Return the time by the clock of the database, which is queried once."""
        if self._clock is None:
            async with self._journal.busy():
                self._clock = await self._journal.call(self._journal.db.calls.now), time.monotonic()
        database_time, queried = self._clock
        return database_time + timedelta(seconds=time.monotonic() - queried)

    def _check_running(self, name: str) -> None:
        """Raise if a step of this name runs: the order of the two could differ next time."""
        running = self._running.get(name)
        if running is None:
            return
        current = self._journal.current()
        while current is not None:
            if current.name == running:
                raise InvalidArgument(
                    f"step {name} calls itself", hint="Give the inner step its own name."
                )
            current = current.outer
        raise StepConflict(
            f"step {name} is called while it runs",
            hint="Give each of them its own name, for example: ctx.step(f'fetch {url}', …)",
            step=name,
        )


def _with_number(name: str, number: int) -> str:
    return f"{shorten(name, MAX_BYTES - 8)}#{number}"


async def _result(call: Callable[[], Any], step: CurrentStep) -> Any:
    """Call the function: on the event loop if it is async, else in a thread of its own."""
    token = current_step.set(step)
    try:
        if _is_async(call):
            return await call()
        found = await anyio.to_thread.run_sync(
            call, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
        )
        return await found if inspect.isawaitable(found) else found
    finally:
        current_step.reset(token)


def _is_async(call: Any) -> bool:
    while isinstance(call, partial):
        call = call.func
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


def _check_function(name: str, fn: object) -> None:
    if callable(fn):
        return
    if inspect.iscoroutine(fn):
        fn.close()
    raise InvalidArgument(
        f"step {name} needs a function, not {type(fn).__name__}",
        hint=f"Pass the function and its arguments: ctx.step({name!r}, fetch, url)",
        argument="fn",
    )


def _encoded(name: str, result: object) -> bytes:
    """Encode the result as JSON; invalid parts are replaced, since the step may be expensive."""
    output = encode_safely(result)
    if len(output) > MAX_STEP_BYTES:
        raise TooLarge(
            f"the result of step {name} has {len(output)} bytes, {MAX_STEP_BYTES} are allowed",
            hint="Store the data elsewhere and return a reference.",
            step=name,
        )
    return output


def _compare(saved: Step, now: Input) -> None:
    if saved.input_hash is None or now.hash is None or saved.input_hash == now.hash:
        return
    raise StepConflict(
        f"step {saved.name} was saved for ({saved.input}) and is now called with ({now.shown})",
        hint="Give the other call its own name, or pass what to compare as step_key=.",
        step=saved.name,
    )


def _numbered(step: CurrentStep) -> list[dict[str, Any]]:
    """Give each call of a step an id, so that a repeat after a crash does not count it twice."""
    return [
        {**call, "call_id": call["call_id"] or shorten(f"{step.name}:{number}")}
        for number, call in enumerate(step.calls, start=1)
    ]
