"""Run one claimed task: check its arguments, call the handler, turn the outcome into a result.

Results go to the completer; queues and batches are handled elsewhere.
"""

import math
import time
from functools import partial
from typing import Any
from uuid import UUID

import anyio
import structlog
from anyio import CancelScope, CapacityLimiter

from treadle.artifacts.store import Store
from treadle.db.database import Database
from treadle.errors import ClaimLost, InvalidArgument
from treadle.json import encode_output
from treadle.models import Claim, Failure
from treadle.worker.completer import Completer
from treadle.worker.context import Context
from treadle.worker.outcomes import Outcome, Refused, Suspended, failure_of, flatten_errors
from treadle.worker.rate_limits import ClosedGates
from treadle.worker.registry import Definition, Registry
from treadle.worker.validation import Validation

log = structlog.get_logger(__name__)
NO_OUTPUT = b""
MAX_OUTPUT_BYTES = 16 * 1024 * 1024


class RunningTask:
    """A running handler: its claim, its context, and the scope that can cancel it."""

    __slots__ = ("claim", "context", "scope", "started", "stop_reason")

    def __init__(self, claim: Claim, context: Context, scope: CancelScope) -> None:
        self.claim = claim
        self.context = context
        self.scope = scope
        self.started = False
        self.stop_reason: str | None = None

    @property
    def is_overdue(self) -> bool:
        """Whether the handler runs longer than the timeout of the task."""
        limit_s = self.claim.timeout_s
        return limit_s is not None and time.monotonic() - self.context.started > limit_s

    def stop(self, reason: str) -> None:
        """Cancel the handler; the reason is `lost`, `cancelled` or `drain`."""
        self.stop_reason = reason
        self.context.cancel(reason)
        self.scope.cancel()


class Executor:
    """Runs handlers and passes their results to the completer."""

    def __init__(
        self,
        registry: Registry,
        db: Database,
        completer: Completer,
        *,
        agent: str,
        slots: int,
        closed_gates: ClosedGates | None = None,
        store: Store | None = None,
    ) -> None:
        # By claim, not by task: a task may be claimed again while an earlier attempt cleans up.
        self.running: dict[tuple[UUID, UUID], RunningTask] = {}
        self._registry = registry
        self._db = db
        self._completer = completer
        self._agent = agent
        self._closed_gates = closed_gates or ClosedGates()
        self._store = store
        self._threads = CapacityLimiter(slots)
        self._validation = Validation(registry.validators, db, self._threads)

    async def run(self, claim: Claim) -> None:
        """Run the handler of a claim until it returns, raises or is cancelled."""
        definition = self._registry.get(claim.type)
        if definition is None:
            self._completer.release(claim)
            return
        context = Context(claim, self._db, self._agent, self._closed_gates, self._store)
        result: bytes | Failure | None
        with CancelScope() as scope:
            running = RunningTask(claim, context, scope)
            self.running[claim.id, claim.token] = running
            if claim.timeout_s is not None:
                scope.deadline = anyio.current_time() + claim.timeout_s
            try:
                result = await self._work(definition, running)
            except Outcome as outcome:
                result = outcome.failure()
            except (Exception, SystemExit, Suspended, BaseExceptionGroup) as error:
                result = self._raised(running, error)
            except anyio.get_cancelled_exc_class() as error:
                if anyio.current_effective_deadline() == -math.inf:
                    raise
                # The handler was not cancelled: it raised a cancellation error of its own.
                result = failure_of(error)
            finally:
                del self.running[claim.id, claim.token]
        if scope.cancelled_caught:
            result = self._interrupted(running)
        elif isinstance(result, bytes) and running.is_overdue:
            # The handler blocked the event loop or ignored its cancellation.
            result = _timed_out(claim)
        self._settle(running, result)

    async def _work(self, definition: Definition, running: RunningTask) -> bytes | Failure | None:
        """Call the handler and validate its output."""
        claim, context = running.claim, running.context
        checks = self._validation.prepare(claim, definition) if claim.validation else ()
        result = await self._encode(await self._call(definition, context), context)
        if not (checks or claim.report) or isinstance(result, Failure):
            return result
        if context.completed or context.suspended:
            return result
        return await self._validation.validate(running, checks, result)

    async def _call(self, definition: Definition, context: Context) -> Any:
        if context.task.problem is not None:
            raise Refused(context.task.problem)
        try:
            arguments = definition.arguments(context.task.spec)
        except InvalidArgument as error:
            raise Refused(str(error)) from None
        if definition.context_name is not None:
            arguments[definition.context_name] = context
        if definition.is_async:
            return await definition.handler(**arguments)
        call = partial(definition.handler, **arguments)
        return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._threads)

    async def _encode(self, value: object, context: Context) -> bytes | Failure:
        if isinstance(value, Outcome):
            return value.failure()
        if value is None:
            return NO_OUTPUT
        output, replaced = encode_output(value)
        if replaced:
            await context.mark_output(replaced)
        if len(output) > MAX_OUTPUT_BYTES:
            return Failure(
                f"the output has {len(output)} bytes, {MAX_OUTPUT_BYTES} are allowed; "
                "store it elsewhere and return a reference",
                "invalid_output",
                action="fail",
            )
        return output

    def _raised(self, running: RunningTask, error: BaseException) -> Failure | None:
        """Return the result of an attempt that raised; None if there is nothing to report."""
        found = list(flatten_errors(error))
        if running.context.suspended and any(isinstance(each, Suspended) for each in found):
            return None
        if any(isinstance(each, ClaimLost) for each in found):
            running.stop_reason = "lost"
            return None
        if not all(isinstance(each, (Exception, SystemExit, Suspended)) for each in found):
            raise error
        return failure_of(error)

    def _interrupted(self, running: RunningTask) -> Failure | None:
        """Return the result of a cancelled attempt; without a stop reason it was the deadline."""
        if running.stop_reason is None:
            running.context.cancel("timeout")
            return _timed_out(running.claim)
        return None

    def _settle(self, running: RunningTask, result: bytes | Failure | None) -> None:
        claim = running.claim
        run_ms = int((time.monotonic() - running.context.started) * 1000)
        if running.context.completed:
            self._completer.completed_by_handler(claim, run_ms)
            return
        if running.context.suspended:
            if result is not None:
                log.warning(
                    "task.result_ignored",
                    task_id=str(claim.id),
                    type=claim.type,
                    hint="The task is suspended. The handler must not catch Suspended.",
                    result=repr(result)[:500],
                )
            return
        if result is not None and running.context.unsent_progress is not None:
            self._completer.store_progress(claim, running.context.unsent_progress)
        if isinstance(result, bytes):
            self._completer.complete(claim, result, run_ms, running.context.decision_report)
        elif isinstance(result, Failure):
            self._completer.fail(claim, result, run_ms)
        elif running.stop_reason == "drain":
            self._completer.release(claim)
        else:
            log.warning(
                "task.stopped", task_id=str(claim.id), type=claim.type, reason=running.stop_reason
            )


def _timed_out(claim: Claim) -> Failure:
    return Failure(f"ran longer than {claim.timeout_s:g} s", "timeout")
