"""Call the SQL functions of treadle directly, to measure the database without the worker."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import psycopg

from treadle.db.install.migrate import migrate

AGENT = "bench"
ENQUEUE_BATCH = 1000
LIFE_BATCH = 200

# A procedure may commit, so one call has as many transactions as a worker would have.
PROCEDURES = """
    create procedure public.bench_enqueue(p_n integer, p_batch integer, p_types text[])
    language plpgsql
    as $$
    begin
      for v_first in 0 .. p_n - 1 by p_batch loop
        perform count(*)
        from treadle.enqueue_batch(
          'default',
          p_types[1 + (v_first / p_batch) % cardinality(p_types)],
          array(
            select jsonb_build_object('i', job.i)
            from generate_series(v_first, least(p_n, v_first + p_batch) - 1) as job (i)
          )
        );
        if (v_first + p_batch) % 1000 = 0 then
          commit;
        end if;
      end loop;
    end;
    $$;

    create procedure public.bench_live(p_n integer, p_batch integer)
    language plpgsql
    as $$
    declare
      v_done  integer := 0;
      v_token uuid;
      v_ids   uuid[];
    begin
      while v_done < p_n loop
        v_token := gen_random_uuid();
        select array_agg(claim.id)
        into v_ids
        from treadle.claim_tasks(
          'bench', '{default}', null, least(p_batch, p_n - v_done), false, v_token
        ) as claim;
        commit;
        if v_ids is null then
          raise exception 'only % of % tasks were there', v_done, p_n;
        end if;
        perform count(*)
        from treadle.complete_tasks(
          v_ids,
          array_fill(v_token, array[cardinality(v_ids)]),
          array_fill(null::jsonb, array[cardinality(v_ids)])
        );
        commit;
        v_done := v_done + cardinality(v_ids);
      end loop;
    end;
    $$;
"""


class Engine:
    """One session on a database with treadle's schema, an agent and some types."""

    def __init__(self, url: str, types: Sequence[str] = ("noop",)) -> None:
        migrate(url)
        self.url = url
        self.types = list(types)
        self.conn: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)
        self.conn.execute(PROCEDURES)
        self.conn.prepare_threshold = 0
        self.conn.execute("select treadle.register_agent(%s)", (AGENT,))
        for name in self.types:
            self.conn.execute("select treadle.define_type(%s)", (name,))

    def enqueue(self, n: int, *, batch: int = ENQUEUE_BATCH) -> float:
        """Enqueue n tasks inside the server, in turns over the types; return the seconds."""
        return self.timed("call public.bench_enqueue(%s, %s, %s)", n, batch, self.types)

    def live(self, n: int) -> float:
        """Claim and complete n tasks inside the server in batches; return the seconds."""
        return self.timed("call public.bench_live(%s, %s)", n, LIFE_BATCH)

    def claim(self, limit: int, *, queue: str = "default") -> tuple[float, list[UUID], UUID]:
        """Claim in a transaction and commit; return the seconds of the statement alone.

        The commit waits for the disk, which would hide the difference between two claims.
        """
        query = """
            select array_agg(claim.id)
            from treadle.claim_tasks('bench', array[%s], null, %s, false, %s) as claim
        """
        token = uuid4()
        with self.conn.transaction():
            started = time.perf_counter()
            row = self.conn.execute(query, (queue, limit, token)).fetchone()
            elapsed = time.perf_counter() - started
        return elapsed, list((row and row[0]) or []), token

    def complete(self, ids: list[UUID], token: UUID) -> None:
        query = "select count(*) from treadle.complete_tasks(%s, %s)"
        self.conn.execute(query, (ids, [token] * len(ids)))

    def settle(self) -> None:
        """Run vacuum and analyze now, as autovacuum would do later."""
        self.conn.execute("vacuum (analyze) treadle.tasks")

    def close(self) -> None:
        self.conn.close()

    def timed(self, query: str, *values: Any) -> float:
        started = time.perf_counter()
        self.conn.execute(query, values)
        return time.perf_counter() - started
