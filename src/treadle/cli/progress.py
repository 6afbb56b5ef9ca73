"""A bar for work that takes a while, where somebody looks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(word: str, total: int) -> Iterator[Callable[[int], None]]:
    """Tell it how much is done so far. It stays off stdout and is gone when the work is."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True, highlight=False)
    columns = (
        TextColumn(word),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
    )
    began = time.monotonic()
    shown = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with shown:
        line = shown.add_task("", total=total, speed="")

        def tell(done: int) -> None:
            speed = f"{done / max(time.monotonic() - began, 0.001):,.0f}/s"
            shown.update(line, completed=done, total=max(total, done), speed=speed)

        yield tell
