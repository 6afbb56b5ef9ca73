"""Drive the SQL interface directly: enqueue, claim, age, reap, promote, and read the rows.

It calls the same functions as clients. Only ageing, the clock and reading tables need the superuser
that the tests log in as.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.pq import ExecStatus
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from treadle.models import Claim, Enqueued, Promoted, Reaped

Record = dict[str, Any]
Connection = psycopg.Connection[tuple[Any, ...]]

# Ahead of the real time, or stopped. Looked up by its key: functions that forbid sequential scans
# would otherwise need one, and on PostgreSQL 15 have it compiled each time.
CLOCK = """
create table if not exists public.test_clock (
  id integer primary key default 1, ahead interval, stopped_at timestamptz
);
grant select on public.test_clock to public;
create or replace function treadle.clock() returns timestamptz language sql volatile as $$
  select coalesce(
    (select stopped_at from public.test_clock where id = 1),
    pg_catalog.clock_timestamp()
    + coalesce((select ahead from public.test_clock where id = 1), interval '0')
  )
$$;
"""

CLOCK_IS_OURS = """
select strpos(prosrc, 'public.test_clock') > 0 from pg_proc
where oid = 'treadle.clock()'::regprocedure
"""


class Driver:
    """One connection to a test database, with the calls of producers, agents and operators."""

    def __init__(self, url: str, connect: Callable[[], Connection]) -> None:
        self.url = url
        self.connect = connect
        self.conn = connect()

    def another(self) -> Driver:
        """A second session on the same database."""
        return Driver(self.url, self.connect)

    # Reading rows

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        cursor = self.conn.execute(query.encode(), parameters)
        result = cursor.pgresult
        # Not by the description of the cursor: rows without columns are rows, too.
        return cursor.fetchall() if result and result.status == ExecStatus.TUPLES_OK else []

    def value(self, query: str, *parameters: object) -> Any:
        [[value]] = self.rows(query, *parameters)
        return value

    def records(self, query: str, *parameters: object) -> list[Record]:
        with self.conn.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query.encode(), parameters).fetchall()

    def task(self, task_id: UUID) -> Record:
        """The whole row of a task, with its options and its result."""
        query = """
            select
              tasks.*, task_options.*, results.consumed_at, results.consumed_token,
              results.decision_report, details.outcome, details.attempt_notes,
              details.input_tokens, details.output_tokens
            from treadle.tasks
            inner join treadle.task_details as details on tasks.id = details.id
            left join treadle.task_options on tasks.id = task_options.task_id
            left join treadle.results on tasks.id = results.task_id
            where tasks.id = %s
        """
        [row] = self.records(query, task_id)
        return row

    def state_of(self, task_id: UUID) -> str:
        return str(self.task(task_id)["status"])

    def attempts(self, task_id: UUID) -> list[Record]:
        query = "select * from treadle.attempts where task_id = %s order by ended_at"
        return self.records(query, task_id)

    def events(self, task_id: UUID) -> list[Record]:
        return self.records("select * from treadle.events where task_id = %s order by id", task_id)

    def contents(self) -> dict[str, list[str]]:
        """Every row of every table, to show that nothing changed."""
        tables = self.rows("select tablename from pg_tables where schemaname = 'treadle'")
        found = {}
        for (name,) in tables:
            query = sql.SQL("select t::text from {} as t order by 1").format(
                sql.Identifier("treadle", name)
            )
            found[name] = [row[0] for row in self.conn.execute(query).fetchall()]
        return found

    # Producers

    def enqueue(
        self,
        spec: Record | None = None,
        *,
        queue: str = "default",
        type: str = "code",
        key: str | None = None,
        **options: Any,
    ) -> UUID:
        return self.enqueue_batch([spec or {}], queue=queue, type=type, keys=[key], **options)[0].id

    def enqueue_batch(
        self,
        specs: Sequence[object],
        *,
        queue: str = "default",
        type: str = "code",
        keys: Sequence[str | None] | None = None,
        **options: Any,
    ) -> list[Enqueued]:
        rows = self.rows(
            "select id, created from treadle.enqueue_batch(%s, %s, %s::jsonb[], %s, %s::text[])",
            queue,
            type,
            [Jsonb(spec) for spec in specs],
            Jsonb(options),
            None if keys is None else list(keys),
        )
        return [Enqueued(*row) for row in rows]

    def cancel(self, *ids: UUID, reason: str | None = None) -> list[str]:
        query = "select verdict from treadle.cancel_tasks(%s, %s, 'tester')"
        return [row[0] for row in self.rows(query, list(ids), reason)]

    # Agents

    def agent(self, name: str, **options: Any) -> str:
        given = "".join(f", p_{option} => %s" for option in options)
        self.rows(f"select treadle.register_agent(%s{given})", name, *options.values())
        return name

    def claim(
        self,
        agent: str = "a",
        limit: int = 1,
        *,
        queues: Sequence[str] = ("default",),
        types: Sequence[str] | None = None,
        start: bool = True,
        token: UUID | None = None,
        idle: bool = False,
    ) -> list[Claim]:
        rows = self.records(
            "select * from treadle.claim_tasks(%s, %s, %s::text[], %s, %s, %s, %s)",
            *(agent, list(queues), None if types is None else list(types)),
            *(limit, start, token, idle),
        )
        return [Claim(token=row.pop("claim_token"), **row) for row in rows]

    def claim_one(self, agent: str = "a", **options: Any) -> Claim:
        [claim] = self.claim(agent, **options)
        return claim

    def start(self, claim: Claim) -> str:
        return str(self._answer("start_tasks(%s, %s)", [claim.id], [claim.token]))

    def heartbeat(self, claim: Claim, progress: object = None) -> str:
        given = None if progress is None else [Jsonb(progress)]
        call = "heartbeat_tasks(%s, %s, %s::jsonb[])"
        return str(self._answer(call, [claim.id], [claim.token], given))

    def complete(self, claim: Claim, output: object = None) -> str:
        call = "complete_tasks(%s, %s, %s::jsonb[])"
        return str(self._answer(call, [claim.id], [claim.token], [Jsonb(output)]))

    def fail(
        self,
        claim: Claim,
        error: str = "boom",
        *,
        failure_class: str | None = "error",
        action: str | None = None,
        retry_after: float | None = None,
        key: str | None = None,
    ) -> str:
        call = "fail_tasks(%s, %s, %s::text[], %s, %s::text[], %s::float8[], %s::text[])"
        given = ([failure_class], [error], [action], [retry_after], [key])
        return str(self._answer(call, [claim.id], [claim.token], *given))

    def release(self, claim: Claim) -> str:
        return str(self._answer("release_tasks(%s, %s)", [claim.id], [claim.token]))

    # Background processes and operators

    def reap(self, limit: int = 100, skip: Sequence[UUID] = ()) -> list[Reaped]:
        query = "select * from treadle.reap_claims(%s, %s::uuid[])"
        return [Reaped(*row) for row in self.rows(query, limit, list(skip))]

    def promote(self, limit: int = 1000, skip: Sequence[UUID] = ()) -> list[Promoted]:
        query = "select * from treadle.promote_tasks(%s, %s::uuid[])"
        return [Promoted(*row) for row in self.rows(query, limit, list(skip))]

    def retry(self, task_id: UUID, resolution: str = "retry", changes: Record | None = None) -> str:
        query = "select treadle.retry_task(%s, %s, %s, 'tester', 'a note')"
        return str(self.value(query, task_id, resolution, Jsonb(changes or {})))

    # Time

    def age_claim(self, task_id: UUID, by: timedelta) -> None:
        """Move all times of a claim into the past."""
        self.rows(
            """
            update treadle.tasks
            set
              claimed_at = claimed_at - given.age, started_at = started_at - given.age,
              heartbeat_at = heartbeat_at - given.age, lease_until = lease_until - given.age
            from (select %s as age) as given
            where id = %s
            """,
            by,
            task_id,
        )

    def expire(self, claim: Claim) -> Reaped:
        """Expire a claim and reap it."""
        self.age_claim(claim.id, timedelta(hours=1))
        [reaped] = [each for each in self.reap() if each.id == claim.id]
        return reaped

    def fall_due(self, task_id: UUID) -> None:
        """Make a waiting task and all gates due, and promote the task."""
        self.rows("update treadle.gates set closed_until = null, slowed_until = '-infinity'")
        self.rows(
            """
            update treadle.tasks
            set retry_at = retry_at - interval '60 days', run_at = run_at - interval '60 days'
            where id = %s
            """,
            task_id,
        )
        assert task_id in [each.id for each in self.promote()]

    def set_clock(self, ahead: timedelta, *, stopped: bool = False) -> None:
        """Set treadle.clock() ahead of the real time, or stop it there."""
        # To replace the function makes every session plan again what calls it.
        if not self.value(CLOCK_IS_OURS):
            self.rows("set client_min_messages = warning")
            self.conn.execute(CLOCK.encode())
        self.rows("delete from public.test_clock")
        stop = "clock_timestamp() + %s" if stopped else "null"
        given = [ahead, ahead] if stopped else [ahead]
        self.rows(f"insert into public.test_clock (ahead, stopped_at) values (%s, {stop})", *given)

    def _answer(self, call: str, *parameters: object) -> Any:
        [row] = self.records(f"select * from treadle.{call}", *parameters)
        return row["verdict"]
