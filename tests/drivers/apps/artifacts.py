"""An application whose worker is killed once, while it stores a file."""

import hashlib
import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from tests.drivers.apps.naps import SOON
from tests.drivers.processes.children import until
from treadle import Artifact, Context, Treadle
from treadle.artifacts.store import Written
from treadle.settings import Settings

MIB = 1024 * 1024
CONTENT = b"".join(number.to_bytes(4, "big") * (MIB // 4) for number in range(20))
DIGEST = hashlib.sha256(CONTENT).hexdigest()
POINTS = ("reserved", "writing", "written", "stored", "step")


def make_app(settings: Settings | None = None) -> Treadle:
    """The application: for a worker by its settings, for a test on its database and its store."""
    app = Treadle(settings=settings)

    @app.task(max_attempts=3, retry=SOON)
    async def keep(ctx: Context, point: str, hold: str = "") -> Artifact:
        """Store a file; the worker is killed at a given point, or before the task is completed.

        With `hold` the first attempt stores the rest only when there is a file of this name.
        """

        def reached(here: str) -> None:
            if ctx.attempt == 1 and here == point:
                os.kill(os.getpid(), signal.SIGKILL)

        async def chunks() -> AsyncGenerator[bytes, None]:
            reached("reserved")
            for at in range(0, len(CONTENT), MIB):
                yield CONTENT[at : at + MIB]
            reached("writing")
            if ctx.attempt == 1 and hold:
                await until(Path(hold).exists, within=3600)

        real = app.store.write

        async def write(*given: Any, **options: Any) -> Written:
            written = await real(*given, **options)
            reached("written")
            return written

        app.store.write = write  # type: ignore[method-assign]
        if point == "step":
            made: Artifact = await ctx.step("keep", ctx.artifact.put, "cat.bin", CONTENT)
            reached("step")
            return made
        made = await ctx.artifact.put("cat.bin", chunks())
        reached("stored")
        return made

    return app


app = make_app()
