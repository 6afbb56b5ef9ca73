"""A shop that stores an order and its task in one transaction, and completes tasks in one as well.

    treadle worker examples.orders:app
    python -m examples.orders

Run the commands in two terminals, both with TREADLE_DATABASE_URL.
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
    """Store an order and enqueue its shipment, in the transaction of the caller."""
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
    """Place two orders, roll back the second, and wait until the first is shipped."""
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
