"""A notifier as a process, and events for it to send."""

from functools import partial

from tests.drivers.processes import children
from tests.drivers.processes.children import Conn

# Processes start slowly when many start at once.
until = partial(children.until, within=30)
SETTINGS = {"webhook_private": 1, "webhook_timeout_s": 20, "service_s": 0.1}


async def emit(conn: Conn, first: int, last: int, size: int = 0) -> None:
    await conn.execute(
        """
        select treadle.emit_event(
          'test.counted', jsonb_build_object('n', n, 'text', repeat('x', %s::integer))
        )
        from generate_series(%s::integer, %s::integer) as n
        """,
        (size, first, last),
    )


async def due(conn: Conn) -> None:
    await conn.execute("update treadle.webhooks set next_try_at = clock_timestamp()")
