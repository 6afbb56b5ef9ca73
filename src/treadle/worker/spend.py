"""Costs of a running task: record them, reserve amounts, enforce limits."""

from decimal import Decimal
from typing import Any
from uuid import uuid4

from treadle.errors import BudgetExceeded, InvalidArgument
from treadle.models import SpendState
from treadle.worker.journal import MAX_BYTES, Journal, SuspendReason
from treadle.worker.outcomes import FailPermanently

# The limits of SQL, checked here because a step must not fail to be saved because of its costs.
MAX_USD, MAX_TOKENS = 1_000_000, 999_999_999_999


class Spend:
    """The costs of one attempt."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._over = False

    async def spend(
        self,
        usd: Any,
        model: str | None,
        input_tokens: int,
        output_tokens: int,
        call_id: str | None,
    ) -> None:
        """Record a cost: together with the current step if there is one, else at once."""
        call = {
            "call_id": _short("call_id", call_id),
            "usd": _amount("usd", float(usd), MAX_USD),
            "model": _short("model", model),
            "input_tokens": _amount("input_tokens", int(input_tokens), MAX_TOKENS),
            "output_tokens": _amount("output_tokens", int(output_tokens), MAX_TOKENS),
        }
        current = self._journal.current()
        if current is not None:
            current.calls.append(call)
            return
        call["call_id"] = call_id or str(uuid4())
        journal, claim = self._journal, self._journal.claim
        async with journal.busy():
            state = await journal.call(
                lambda: journal.db.budgets.record(claim.id, claim.token, [call])
            )
        self.set_verdict(state.verdict)
        await self.enforce()

    async def reserve(self, usd: Any) -> None:
        """Reserve an amount; wait for a decision or raise BudgetExceeded if it is not left."""
        self._journal.forbid_in_step("reserve")
        state = await self.state(Decimal(str(_amount("usd", float(usd), MAX_USD))))
        await self._wait(state)
        if state.verdict != "ok":
            raise BudgetExceeded(
                state.reason or "the budget is too small for this reservation",
                hint="Reserve less, or raise the budget: treadle budgets set",
                task_id=str(self._journal.claim.id),
                left_usd=str(state.left_usd),
            )

    async def state(self, usd: Decimal = Decimal(0), *, ask: bool = True) -> SpendState:
        """Return what is left for the task; with an amount, reserve it."""
        journal, claim = self._journal, self._journal.claim
        async with journal.busy():
            return await journal.call(
                lambda: journal.db.budgets.reserve(claim.id, claim.token, usd, ask=ask)
            )

    def set_verdict(self, verdict: str) -> None:
        """Remember that a limit is exceeded, until `enforce` is called."""
        self._over = self._over or verdict != "ok"

    async def enforce(self) -> None:
        """Wait for a decision or fail if a limit is exceeded; does nothing inside a step."""
        if not self._over or self._journal.current() is not None:
            return
        self._over = False
        state = await self.state()
        await self._wait(state)
        if state.verdict != "ok":
            raise FailPermanently(state.reason or "the budget is exhausted", "budget_exceeded")

    async def _wait(self, state: SpendState) -> None:
        if state.verdict == "ask" and state.wait_id is not None:
            await self._journal.suspend(SuspendReason(waits=[state.wait_id]))


def _amount(name: str, value: float, maximum: int) -> float:
    if not 0 <= value <= maximum:
        raise InvalidArgument(f"{name} must be 0 to {maximum}, not {value}", argument=name)
    return value


def _short(name: str, text: str | None) -> str | None:
    if text is not None and not 0 < len(text.encode()) <= MAX_BYTES:
        raise InvalidArgument(f"{name} must have 1 to {MAX_BYTES} bytes", argument=name)
    return text
