"""The methods of a context for sync handlers, which run in threads and cannot await."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from anyio import from_thread

from treadle.models import Answer, Artifact, ListedArtifact, SpendState

if TYPE_CHECKING:
    from treadle.worker.artifacts import Artifacts, Data, Reference
    from treadle.worker.context import Context
    from treadle.worker.registry import Enqueueable
    from treadle.worker.spawn import Child
    from treadle.worker.waits import AskOptions, EventOptions, Question


class BlockingContext:
    """`ctx.blocking`: the methods of the context without await; each blocks its thread."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def step(
        self, name: str, fn: Callable[..., Any], /, *args: Any, step_key: Any = ..., **kwargs: Any
    ) -> Any:
        """Call a function once and save its result."""
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
        """Record the cost of a call."""
        call = partial(
            self._context.spend,
            usd,
            model=model,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            call_id=call_id,
        )
        from_thread.run(call)

    def note(self, text: str) -> None:
        """Leave a note for later attempts of this task."""
        from_thread.run(self._context.note, text)

    def reserve(self, usd: float | Decimal) -> None:
        """Reserve an amount for an expensive call."""
        from_thread.run(partial(self._context.reserve, usd))

    def budget(self) -> SpendState:
        """Return what the task has cost and how much is left."""
        return from_thread.run(self._context.budget)

    def ask(self, question: str, **options: Unpack[AskOptions]) -> Answer:
        """Ask people a question; the task releases its claim until there is an answer."""
        return from_thread.run(partial(self._context.ask, question, **options))

    def ask_later(self, question: str, **options: Unpack[AskOptions]) -> BlockingQuestion:
        """Ask people a question and continue; `question.answer()` waits for the answer."""
        asked = from_thread.run(partial(self._context.ask_later, question, **options))
        return BlockingQuestion(asked)

    def wait_for(self, event: str, **options: Unpack[EventOptions]) -> Any:
        """Wait for an event and return its payload; the task releases its claim until then."""
        return from_thread.run(partial(self._context.wait_for, event, **options))

    def sleep(self, seconds: float | timedelta, *, name: str | None = None) -> None:
        """Release the claim for a number of seconds."""
        from_thread.run(partial(self._context.sleep, seconds, name=name))

    def spawn(
        self, task: Enqueueable, /, *, name: str | None = None, **arguments: Any
    ) -> BlockingChild:
        """Create a subtask and continue."""
        call = partial(self._context.spawn, task, name=name, **arguments)
        return BlockingChild(from_thread.run(call))

    def spawn_and_wait(
        self,
        calls: Sequence[Enqueueable],
        *,
        name: str | None = None,
        return_exceptions: bool = False,
    ) -> list[Any]:
        """Create subtasks and release the claim until all have ended."""
        call = partial(
            self._context.spawn_and_wait, calls, name=name, return_exceptions=return_exceptions
        )
        return from_thread.run(call)

    @property
    def artifact(self) -> BlockingArtifacts:
        """The files of the task."""
        return BlockingArtifacts(self._context.artifact)


class BlockingArtifacts:
    """`ctx.blocking.artifact`: the files of the task, for a sync handler."""

    __slots__ = ("_artifacts",)

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts

    def put(
        self, name: str, data: Data, *, media_type: str | None = None, max_bytes: int | None = None
    ) -> Artifact:
        """Store a file; return its id, name, size, hash, media type and uri."""
        call = partial(self._artifacts.put, name, data, media_type=media_type, max_bytes=max_bytes)
        return from_thread.run(call)

    @overload
    def get(self, artifact: Reference) -> bytes: ...

    @overload
    def get(self, artifact: Reference, *, to: str | os.PathLike[str]) -> Path: ...

    def get(self, artifact: Reference, *, to: str | os.PathLike[str] | None = None) -> bytes | Path:
        """Return the content of an artifact; with `to`, save it there and return the path."""
        if to is None:
            return from_thread.run(partial(self._artifacts.get, artifact))
        return from_thread.run(partial(self._artifacts.get, artifact, to=to))

    def open(self, artifact: Reference) -> Iterator[bytes]:
        """Read an artifact in chunks: `for chunk in ctx.blocking.artifact.open(report)`."""
        chunks = aiter(from_thread.run(self._artifacts.open, artifact))
        while (chunk := from_thread.run(anext, chunks, None)) is not None:
            yield chunk

    def link(
        self,
        name: str,
        uri: str,
        *,
        media_type: str | None = None,
        size: int | None = None,
        sha256: str | None = None,
    ) -> Artifact:
        """Record a file that is stored outside the store."""
        call = partial(
            self._artifacts.link, name, uri, media_type=media_type, size=size, sha256=sha256
        )
        return from_thread.run(call)

    def list(self) -> tuple[ListedArtifact, ...]:
        """List the files of this task from all its attempts, oldest first."""
        return from_thread.run(self._artifacts.list)


class BlockingQuestion:
    """An open question, for a sync handler."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.id = question.id
        self.name = question.name

    def answer(self) -> Answer:
        """Return the answer; the task releases its claim until there is one."""
        return from_thread.run(self._question.answer)


class BlockingChild:
    """A subtask, for a sync handler."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self.id = child.id
        self.created = child.created

    def result(self) -> Any:
        """Return its output; the task releases its claim until the subtask has ended."""
        return from_thread.run(self._child.result)
