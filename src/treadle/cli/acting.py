"""What commands share that change one thing by its name: how they do it, and how they say so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from treadle.cli import common, out

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.db.gateway import Gateway

T = TypeVar("T")


def change(work: Callable[[Gateway], Awaitable[T]], url: str | None) -> T:
    """Call one function of the database."""

    async def inside(app: Treadle) -> T:
        return await work(await app.gateway())

    return common.call(inside, url)


def done(text: str, as_json: bool, /, **facts: object) -> None:
    """Say what was done: a sentence on stderr, or the facts as JSON on stdout."""
    if as_json:
        out.document(facts)
    else:
        common.note(text)
