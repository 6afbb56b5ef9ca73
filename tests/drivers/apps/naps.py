"""The application that the tests run in processes of their own.

Handlers note what they do in the plain table `effects` of the test's database.
"""

import logging
import os
import signal
import sys
import time
from pathlib import Path

import anyio

from tests.drivers.processes.children import until
from treadle import ClaimLost, Context, Treadle
from treadle.fields import RetryPolicy
from treadle.settings import Settings

EFFECTS = """
    create table effects (
      id bigint generated always as identity,
      task_id uuid not null,
      what text not null,
      agent text not null,
      attempt integer not null,
      at timestamptz not null default clock_timestamp()
    )
"""
PONDER = "import json, sys, time; time.sleep(json.load(sys.stdin)['output']['nap'])"
NOTE = "insert into effects (task_id, what, agent, attempt) values (%s, %s, %s, %s)"
SOON: RetryPolicy = {
    "strategy": "fixed",
    "initial_delay_s": 0.1,
    "jitter": False,
    "poison": False,
}

# Seconds to sleep, or a file whose appearance ends the nap: then the test decides when.
Nap = float | str


def nap_of(ctx: Context, naps: list[Nap]) -> Nap:
    """The nap of this attempt; the last of the naps goes for all later attempts."""
    return naps[min(ctx.attempt, len(naps)) - 1]


async def take_nap(nap: Nap) -> None:
    if isinstance(nap, str):
        await until(Path(nap).exists, within=3600)
    else:
        await anyio.sleep(nap)


def take_nap_in_thread(nap: Nap) -> None:
    if not isinstance(nap, str):
        time.sleep(nap)
    while isinstance(nap, str) and not Path(nap).exists():
        time.sleep(0.02)


def make_app(url: str | None = None, settings: Settings | None = None) -> Treadle:
    """The application: for a worker by its settings, for a test on its database."""
    app = Treadle(url, settings=settings)

    async def note(ctx: Context, what: str) -> None:
        async with app.db.calls.connection() as conn:
            await conn.execute(NOTE, (ctx.task.id, what, ctx.agent, ctx.attempt))

    @app.task(max_attempts=10, retry=SOON)
    async def nap(ctx: Context, naps: list[Nap]) -> str:
        """Take the nap of this attempt and note when it begins and ends."""
        await note(ctx, "begin")
        await take_nap(nap_of(ctx, naps))
        await note(ctx, "end")
        return ctx.agent

    @app.task(max_attempts=10, retry=SOON)
    async def rest(ctx: Context, naps: list[Nap]) -> str:
        """Take a nap and answer, without another call to the database."""
        await take_nap(nap_of(ctx, naps))
        return ctx.agent

    @app.task(max_attempts=10, retry=SOON)
    def doze(ctx: Context, naps: list[Nap]) -> str:
        """The same in a thread that cannot be interrupted."""
        take_nap_in_thread(nap_of(ctx, naps))
        return ctx.agent

    @app.task(max_attempts=10, retry=SOON)
    async def pay(ctx: Context, naps: list[Nap]) -> None:
        """Write and complete in one transaction, with a nap between; nothing interrupts it."""
        try:
            with anyio.CancelScope(shield=True):
                async with ctx.transaction(output=ctx.agent) as conn:
                    await conn.execute(NOTE, (ctx.task.id, "paid", ctx.agent, ctx.attempt))
                    await take_nap(nap_of(ctx, naps))
        except ClaimLost:
            ctx.log.warning("pay.refused")
            raise

    @app.task(max_attempts=10, retry=SOON)
    async def pay_or_die(ctx: Context) -> None:
        """Be killed between the write and the commit, the first time."""
        async with ctx.transaction(output=ctx.agent) as conn:
            await conn.execute(NOTE, (ctx.task.id, "paid", ctx.agent, ctx.attempt))
            if ctx.attempt == 1:
                os.kill(os.getpid(), signal.SIGKILL)

    @app.task(max_attempts=3, retry=SOON)
    async def stumble(ctx: Context) -> str:
        """Fail once."""
        ctx.log.info("task.stumbling", text="two\nlines and \x1b[31mcolour")
        if ctx.attempt == 1:
            raise ValueError("not at first")
        return ctx.agent

    @app.task(max_attempts=10, retry=SOON)
    async def confer(ctx: Context) -> list[str | None]:
        """Ask a person between two steps."""
        await ctx.step("before", note, ctx, "before")
        answer = await ctx.ask("Go on?", options=["yes", "no"])
        await ctx.step("after", note, ctx, "after")
        return [answer.value, answer.by]

    @app.task(max_attempts=10, retry=SOON)
    async def ponder(ctx: Context, naps: list[Nap]) -> str | None:
        """Ask a person, nap, and only then wait for the answer."""
        question = await ctx.ask_later("Go on?", options=["yes", "no"])
        await note(ctx, "asked")
        await take_nap(nap_of(ctx, naps))
        return (await question.answer()).by

    @app.task(max_attempts=10, retry=SOON)
    async def delegate(ctx: Context, naps: list[list[Nap]]) -> list[str]:
        """Spawn naps between two steps; return their names."""
        await ctx.step("before", note, ctx, "before")
        agents = await ctx.spawn_and_wait([nap.call(naps=each) for each in naps])
        await ctx.step("after", note, ctx, "after")
        return agents

    @app.task(max_attempts=100, retry=SOON)
    async def shop(ctx: Context, usd: float, naps: list[Nap]) -> str:
        """Pay in two calls with a nap between them; each attempt pays the first one again."""
        await ctx.spend(usd / 4)
        await take_nap(nap_of(ctx, naps))
        await ctx.spend(usd / 4, call_id="last")
        return ctx.agent

    @app.task(max_attempts=10, retry=SOON)
    async def draft(ctx: Context, naps: list[float]) -> dict[str, object]:
        """Return an output, and the duration of its validation in this attempt."""
        await note(ctx, "drafted")
        return {"by": ctx.agent, "nap": naps[min(ctx.attempt, len(naps)) - 1]}

    @app.validator("ponder")
    async def consider(output: dict[str, float]) -> None:
        await anyio.sleep(output["nap"])

    @app.validator("suicide")
    def collapse(output: object, ctx: Context) -> None:
        if ctx.attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    app.command("ponder", [sys.executable, "-c", PONDER])

    @app.task()
    def chatter(text: str) -> None:
        """Log as libraries do."""
        logging.getLogger("somebody.else").warning("said %s", text)

    return app


app = make_app()
