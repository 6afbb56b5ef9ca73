"""What a running task spends and reserves, and what happens when there is no more."""

from decimal import Decimal
from typing import Any
from uuid import uuid4

from treadle.errors import BudgetExceeded, InvalidArgument
from treadle.models import SpendState
from treadle.worker.journal import MAX_BYTES, Journal, SuspendReason
from treadle.worker.outcomes import FailForGood

# What SQL takes: a step must not be refused for what it says of its cost.
MAX_USD, MAX_TOKENS = 1_000_000, 999_999_999_999


class Spend:
    """The money of one attempt."""

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
        """Count what was paid: with the step that it was paid in, else at once."""
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
            money = await journal.call(
                lambda: journal.db.budgets.record(claim.id, claim.token, [call])
            )
        self.note(money.verdict)
        await self.enforce()

    async def reserve(self, usd: Any) -> None:
        """Make sure that so much is there to be spent, or wait for it, or raise."""
        self._journal.forbid_in_step("reserve")
        money = await self.state(Decimal(str(_amount("usd", float(usd), MAX_USD))))
        await self._wait(money)
        if money.verdict != "ok":
            raise BudgetExceeded(
                money.reason or "no budget has so much left",
                hint="Do with less, or have the budget raised: treadle budget set",
                task_id=str(self._journal.claim.id),
                left_usd=str(money.left_usd),
            )

    async def state(self, usd: Decimal = Decimal(0), *, ask: bool = True) -> SpendState:
        """What is left for the task; with an amount, that much of it is reserved."""
        journal, claim = self._journal, self._journal.claim
        async with journal.busy():
            return await journal.call(
                lambda: journal.db.budgets.reserve(claim.id, claim.token, usd, ask=ask)
            )

    def note(self, verdict: str) -> None:
        """What the database said after a spend."""
        self._over = self._over or verdict != "ok"

    async def enforce(self) -> None:
        """When a limit is passed, wait for more money or give up; not in the midst of a step."""
        if not self._over or self._journal.current() is not None:
            return
        self._over = False
        money = await self.state()
        await self._wait(money)
        if money.verdict != "ok":
            raise FailForGood(money.reason or "the budget is spent", "budget_exceeded")

    async def _wait(self, money: SpendState) -> None:
        if money.verdict == "ask" and money.wait_id is not None:
            await self._journal.suspend(SuspendReason(waits=[money.wait_id]))


def _amount(name: str, value: float, most: int) -> float:
    if not 0 <= value <= most:
        raise InvalidArgument(f"{name} is {value}, not 0 to {most}", argument=name)
    return value


def _short(name: str, text: str | None) -> str | None:
    if text is not None and not 0 < len(text.encode()) <= MAX_BYTES:
        raise InvalidArgument(f"{name} has 1 to {MAX_BYTES} bytes", argument=name)
    return text
