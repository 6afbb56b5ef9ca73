"""A shop: an order and its task are written in one transaction, and so are a task's end and effect.

    treadle worker examples.orders:app
    python -m examples.orders

The first line needs TREADLE_DATABASE_URL, and so does the second, in another terminal.
"""

from typing import Any

import anyio
import psycopg

from treadle import Context, Handle, Treadle

app = Treadle()

TABLES = """
    create table if not exists orders (id serial primary key, item text not null);
    create table if not exists shipments (order_id int primary key, label text not null);
"""


def place_order(conn: psycopg.Connection[Any], item: str) -> tuple[int, Handle]:
    """Store an order and enqueue its shipment; both are there exactly if the caller commits."""
    row = conn.execute("insert into orders (item) values (%s) returning id", (item,)).fetchone()
    assert row is not None
    return row[0], ship.enqueue(conn=conn, order_id=row[0])


@app.task(max_attempts=5)
async def ship(ctx: Context, order_id: int) -> None:
    """Ship an order: the shipment is written in the transaction that completes the task."""
    label = f"label-{order_id}"
    async with ctx.transaction(output=label) as conn:
        await conn.execute(
            "insert into shipments (order_id, label) values (%s, %s)", (order_id, label)
        )


async def main() -> None:
    """Place two orders, think better of the second, and wait for the first to be shipped."""
    with psycopg.connect(app.url) as conn:
        conn.execute(TABLES)
        conn.commit()
        order_id, handle = place_order(conn, "a loom")
        conn.commit()
        place_order(conn, "another loom")
        conn.rollback()
    async with app:
        print(f"order {order_id} has {await handle.result(timeout=30)}")


if __name__ == "__main__":
    anyio.run(main)
