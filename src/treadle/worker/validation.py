"""Check an output before it counts: a state of its own, with the claim kept and heartbeats going.

Validators run in the order in which the task names them; the first that refuses ends the attempt
as `invalid_output`, and its messages go to the next one.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import structlog
from anyio import CapacityLimiter

from treadle.db.gateway import Gateway
from treadle.errors import ClaimLost, Unavailable
from treadle.json import clean_text
from treadle.models import Claim, Failure
from treadle.outcomes import InvalidOutput, Outcome
from treadle.worker.failing import Refused, failure_of, leaves, report_missing
from treadle.worker.schemas import BadSchema
from treadle.worker.validators import Check, Validators

if TYPE_CHECKING:
    from treadle.worker.executor import Running

log = structlog.get_logger(__name__)


class Validation:
    """Runs the validators of claims."""

    def __init__(self, validators: Validators, gateway: Gateway, threads: CapacityLimiter) -> None:
        self._validators = validators
        self._gateway = gateway
        self._threads = threads

    def prepare(self, claim: Claim) -> Sequence[Check]:
        """Before anything is paid for: Refused where this worker could not check the output."""
        if not claim.validation:
            return ()
        return self._validators.prepare(claim.validation, self._threads)

    async def judge(
        self, running: "Running", checks: Sequence[Check], output: bytes
    ) -> bytes | Failure | None:
        """The output when it is good, else the failure; None when the claim is gone."""
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

    async def _begin(self, running: "Running") -> bool:
        """Say that the output is being checked; a database that is away is waited for."""
        claim, delay = running.claim, 0.05
        while True:
            try:
                verdicts = await self._gateway.validate_tasks([(claim.id, claim.token)])
                break
            except Unavailable as error:
                log.warning("validation.waiting", task_id=str(claim.id), error=str(error))
                await anyio.sleep(random.uniform(delay / 2, delay))
                delay = min(delay * 2, 5.0)
        running.marked = True
        verdict = verdicts.get(claim.id, "lost")
        if verdict != "ok":
            running.why = verdict
            running.context.cancel(verdict)
        return verdict == "ok"

    async def _run(self, running: "Running", check: Check, output: bytes) -> Failure | None:
        messages: Sequence[str] = ()
        try:
            with anyio.move_on_after(check.limit_s) as scope:
                messages = await check.run(running.context, output)
        except (Outcome, ClaimLost):
            raise
        except BadSchema as error:
            return Refused(f"validator {check.name}: {error}").failure()
        except (Exception, SystemExit) as error:
            if any(isinstance(each, (ClaimLost, Outcome)) for each in leaves(error)):
                raise
            crash = failure_of(error)
            return replace(crash, error=f"validator {check.name} crashed: {crash.error}")
        if scope.cancelled_caught:
            return Failure(
                f"validator {check.name} took longer than {check.limit_s:g} s", "timeout"
            )
        if not messages:
            return None
        told = InvalidOutput(*(f"{check.name}: {each}" for each in messages)).failure()
        return replace(told, error=clean_text("\n".join(told.feedback)))
