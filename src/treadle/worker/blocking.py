"""The methods of a context for plain functions, which run in threads and cannot await."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

from anyio import from_thread

from treadle.models import Answer, Money

if TYPE_CHECKING:
    from treadle.worker.call import Enqueueable
    from treadle.worker.context import Context
    from treadle.worker.spawning import Child
    from treadle.worker.waits import AskOptions, EventOptions, Question


class Blocking:
    """`ctx.blocking`: each method does what the one of the context does, and blocks its thread."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def step(
        self, name: str, fn: Callable[..., Any], /, *args: Any, step_key: Any = ..., **kwargs: Any
    ) -> Any:
        """Call a function once and keep its result."""
        call = partial(self._context.step, name, fn, *args, step_key=step_key, **kwargs)
        return from_thread.run(call)

    def spend(
        self,
        usd: float | Decimal = 0,
        *,
        model: str | None = None,
        input_tokens: int = 0,
        output_tokens: int = 0,
        call_id: str | None = None,
    ) -> None:
        """Count what a call has cost."""
        call = partial(
            self._context.spend,
            usd,
            model=model,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            call_id=call_id,
        )
        from_thread.run(call)

    def reserve(self, usd: float | Decimal) -> None:
        """Make sure that so much is there for an expensive call."""
        from_thread.run(partial(self._context.reserve, usd))

    def budget(self) -> Money:
        """What the task has cost, and what is left for it."""
        return from_thread.run(self._context.budget)

    def ask(self, question: str, **options: Unpack[AskOptions]) -> Answer:
        """Ask people; the task gives up its claim until there is an answer."""
        return from_thread.run(partial(self._context.ask, question, **options))

    def ask_later(self, question: str, **options: Unpack[AskOptions]) -> BlockingQuestion:
        """Ask people and carry on; `question.answer()` waits for the answer."""
        asked = from_thread.run(partial(self._context.ask_later, question, **options))
        return BlockingQuestion(asked)

    def wait_for(self, event: str, **options: Unpack[EventOptions]) -> Any:
        """The payload of an event; the task gives up its claim until it comes."""
        return from_thread.run(partial(self._context.wait_for, event, **options))

    def sleep(self, seconds: float | timedelta, *, name: str | None = None) -> None:
        """Give up the claim for a while."""
        from_thread.run(partial(self._context.sleep, seconds, name=name))

    def spawn(
        self, task: Enqueueable, /, *, name: str | None = None, **arguments: Any
    ) -> BlockingChild:
        """Create a subtask and carry on."""
        call = partial(self._context.spawn, task, name=name, **arguments)
        return BlockingChild(from_thread.run(call))

    def spawn_and_wait(
        self,
        calls: Sequence[Enqueueable],
        *,
        name: str | None = None,
        return_exceptions: bool = False,
    ) -> list[Any]:
        """Create subtasks and give up the claim until all have ended."""
        call = partial(
            self._context.spawn_and_wait, calls, name=name, return_exceptions=return_exceptions
        )
        return from_thread.run(call)

    def artifact(
        self,
        name: str,
        uri: str,
        *,
        media_type: str | None = None,
        size: int | None = None,
        sha256: str | None = None,
    ) -> UUID:
        """Record a file that the task has made."""
        call = partial(
            self._context.artifact, name, uri, media_type=media_type, size=size, sha256=sha256
        )
        return from_thread.run(call)


class BlockingQuestion:
    """A question that is open, for a plain function."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.id = question.id
        self.name = question.name

    def answer(self) -> Answer:
        """The answer; the task gives up its claim until there is one."""
        return from_thread.run(self._question.answer)


class BlockingChild:
    """A subtask, for a plain function."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self.id = child.id
        self.created = child.created

    def result(self) -> Any:
        """Its output; the task gives up its claim until the subtask has ended."""
        return from_thread.run(self._child.result)
