"""What a handler is told about its attempt, and what it tells about its work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from treadle.errors import InvalidArgument
from treadle.json import clean_text, encode_safely
from treadle.outcomes import FailForGood, InvalidOutput
from treadle.reports import DecisionReport, problems_of
from treadle.worker.history import tried

if TYPE_CHECKING:
    from treadle.models import Claim, Step
    from treadle.worker.journal import Journal


class Telling:
    """The part of a context that is about models, earlier attempts, notes and the report."""

    __slots__ = ()

    task: Claim

    if TYPE_CHECKING:

        @property
        def steps(self) -> tuple[Step, ...]: ...

        @property
        def _journal(self) -> Journal: ...

        def _keep_report(self, report: bytes) -> None: ...

    @property
    def models(self) -> list[str]:
        """The models to use now, the best first: from the third attempt on the fallback ones."""
        return self.task.models

    @property
    def previous_attempts(self) -> list[dict[str, Any]]:
        """What the attempts before this one came to: class, error, feedback, notes, review."""
        return self.task.previous or []

    @property
    def tried(self) -> str:
        """What the attempts before this one tried and why they failed, to go into a prompt."""
        return tried(self.previous_attempts, self.steps)

    def report(
        self, report: DecisionReport | Mapping[str, Any] | None = None, /, **fields: Any
    ) -> None:
        """Say what was decided and why; stored when the task is completed, the last one wins.

        A report that is not in shape ends the attempt as invalid_output, like a refused output.
        """
        if report is not None and fields:
            raise InvalidArgument(
                "a report and fields of one", hint="Give one of them.", argument="report"
            )
        try:
            made = DecisionReport.model_validate(fields if report is None else report)
        except ValidationError as error:
            raise InvalidOutput(*problems_of(error)) from None
        self._keep_report(encode_safely(made.model_dump(mode="json", exclude_none=True)))

    async def note(self, text: str) -> None:
        """Leave a note for later attempts of this task; it is kept at once and outlives a crash."""
        journal = self._journal
        async with journal.busy():
            await journal.call(
                lambda: journal.gateway.add_note(self.task.id, self.task.token, clean_text(text))
            )

    def forbid_unchecked(self) -> None:
        """Refuse to complete a task in a transaction when its output has to be checked first."""
        if any(each["validator"] != "none" for each in self.task.validation or ()):
            raise FailForGood(
                f"{self.task.type} has validators: ctx.transaction would complete it before they "
                "have seen its output; return the output, or leave the validators out",
                "refused",
            )
