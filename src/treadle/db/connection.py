"""A connection on which nothing waits without end, and how to tell that one is lost.

Every wait of psycopg on an open connection goes through `Connection.wait`: statements, commits,
rollbacks. So the deadline is there and nowhere else.
"""

import asyncio
import socket
import time
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import psycopg
import structlog
from psycopg import AsyncConnection, capabilities
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGconn
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

log = structlog.get_logger(__name__)
T = TypeVar("T")

CALL_TIMEOUT_S = 30.0
# How long a server may take to accept that a statement is cancelled, and then to end it.
CANCEL_S = 1.5
CANCELLED_S = 1.0
# An answer that was sent has arrived after this time.
WATCH_AGAIN_S = 1.0
# psycopg looks this often whether it was interrupted.
_INTERVAL_S = 0.1
# The server ended the session, or is a standby now.
_NOTHING_DONE = frozenset({"25006", "25P03", "57P01", "57P03", "57P05"})
_ENDED = _NOTHING_DONE | {"57P02"}


class CallTimeout(psycopg.OperationalError):
    """The server did not answer before the deadline; the connection is closed."""


class Watch(Protocol):
    """Whether the server works on what a connection asked for; it may end a session that waits."""

    def __call__(self, conn: "Connection", *, end: bool = False) -> Awaitable[bool]: ...


class Connection(AsyncConnection[tuple[Any, ...]]):
    """An async connection whose statements have a deadline.

    When it passes, the server is asked to stop the statement, for a moment, and the connection is
    closed. Neither needs an answer from the server: a connection that fell silent cannot hold up
    those who use it.
    """

    # The longest wait for one answer; what waits by design sets it higher while it has the
    # connection.
    call_timeout_s = CALL_TIMEOUT_S
    # For statements that may take long: says every `watch_every_s` whether the server still works
    # on the statement. If not, the statement or its answer was lost on the way.
    watch: Watch | None = None
    watch_every_s = CALL_TIMEOUT_S
    # A check has nothing that the server would have to stop.
    asks_to_stop = True

    def __init__(self, pgconn: PGconn, *given: Any, **options: Any) -> None:
        super().__init__(pgconn, *given, **options)
        self.opened_at = self.answered_at = time.monotonic()
        # Whether the last call passed its deadline without any sign of the server.
        self.silent = False
        self._ending: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    async def wait(
        self, gen: PQGen[T], interval: float = _INTERVAL_S, timeout: float | None = None
    ) -> T:
        """Wait for an answer, at most until the deadline; `timeout` is for notifications."""
        if timeout is not None:
            return await super().wait(gen, interval, timeout)
        seconds = self.call_timeout_s
        loop = asyncio.get_running_loop()
        timer = loop.call_later(seconds, self._give_up, seconds)
        watch_timer = None
        if self.watch is not None:
            watch_timer = loop.call_later(self.watch_every_s, self._start_watching)
        try:
            answer = await super().wait(gen, interval)
        except psycopg.Error as error:
            if self._watching is not None and self._watching.done():
                raise CallTimeout("no answer, and does not work on the statement") from error
            if self._ending is None:
                raise
            self.silent = not isinstance(error, psycopg.errors.QueryCanceled)
            raise CallTimeout(f"no answer within {seconds:g} s") from error
        finally:
            timer.cancel()
            if watch_timer is not None:
                watch_timer.cancel()
            if self._watching is not None:
                self._watching.cancel()
                self._watching = None
            if self._ending is not None:
                # A request to cancel that is under way could hit the next statement.
                self._ending.cancel()
                self._ending = None
                await self.close()
        self.answered_at = time.monotonic()
        return answer

    def _start_watching(self) -> None:
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        """End the wait when the server does not work on the statement; it may take any time."""
        while self.watch is not None:
            # Twice: the answer may be on its way.
            if not await self.watch(self):
                await asyncio.sleep(WATCH_AGAIN_S)
                if not await self.watch(self, end=True):
                    break
            await asyncio.sleep(self.watch_every_s)
        log.warning("connection.answer_lost", backend_pid=self.info.backend_pid)
        self.cut()

    def _give_up(self, seconds: float) -> None:
        log.warning(
            "connection.timed_out",
            after_s=seconds,
            backend_pid=self.info.backend_pid,
            idle_before_s=round(max(0.0, time.monotonic() - seconds - self.answered_at), 1),
        )
        self._ending = asyncio.get_running_loop().create_task(self._end())

    async def _end(self) -> None:
        """Ask the server to stop the statement; answered or not, end the wait for it."""
        active = self.pgconn.transaction_status == TransactionStatus.ACTIVE
        if self.asks_to_stop and active and capabilities.has_cancel_safe():
            with suppress(psycopg.Error, OSError):
                await self.cancel_safe(timeout=CANCEL_S)
                await asyncio.sleep(CANCELLED_S)
        self.cut()

    def cut(self) -> None:
        """Make the socket report its end, here and without the other side."""
        with suppress(psycopg.Error, OSError):
            twin = socket.fromfd(self.pgconn.socket, socket.AF_INET, socket.SOCK_STREAM)
            with twin:
                twin.shutdown(socket.SHUT_RDWR)


def may_have_happened(error: BaseException | None) -> bool:
    """Whether the server may have done what it was asked although there was no answer."""
    if isinstance(error, CallTimeout):
        # A statement that the server cancelled was rolled back.
        return not isinstance(error.__cause__, psycopg.errors.QueryCanceled)
    state = getattr(error, "sqlstate", None)
    return is_lost(error) and state not in _NOTHING_DONE


def is_lost(error: BaseException | None) -> bool:
    """Whether an error means that its connection cannot be used any more, or only for reading.

    The same call may succeed on a new connection. A pool that had none to give says nothing about
    any connection.
    """
    if not isinstance(error, psycopg.Error) or isinstance(
        error, (PoolTimeout, PoolClosed, TooManyRequests)
    ):
        return False
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError)
    return state in _ENDED or state.startswith("08")
