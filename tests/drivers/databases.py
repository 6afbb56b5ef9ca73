"""Shared databases: how one is emptied, and connections that tests reuse."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import psycopg

from tests.drivers.engine import Connection
from treadle.db.embedded import EmbeddedServer

NewDatabase = Callable[[], AbstractContextManager[str]]
OwnServer = Callable[..., EmbeddedServer]

IDLE = psycopg.pq.TransactionStatus.IDLE
MOST_SPARES = 20
SEEDS = """
create table public.queues as table treadle.queues;
create table public.task_types as table treadle.task_types;
"""
# Rows are deleted: truncating a table makes every session plan its statements again. A large table
# is truncated nevertheless: deleting its rows would take longer. The lock waits for open writes, so
# that no write of the last test arrives late.
EMPTY = """
do $$
declare
  v_tables text;
  v_empty text;
begin
  select
    string_agg(format('treadle.%I', relname), ', ' order by relname),
    string_agg(
      format(
        '%s treadle.%I',
        case
          when pg_relation_size(oid) > 4 * 2 ^ 20 and relname not in ('queues', 'task_types')
            then 'truncate'
          else 'delete from'
        end,
        relname
      ),
      '; '
      order by relname
    )
  into v_tables, v_empty
  from pg_class
  where
    relnamespace = 'treadle'::regnamespace
    and relkind in ('r', 'p')
    and relname not in ('migrations', 'code');
  execute 'lock table ' || v_tables;
  -- A trigger keeps what may never be lost; here it may.
  set local session_replication_role = replica;
  execute v_empty;
  set local session_replication_role = origin;
  insert into treadle.queues table public.queues;
  insert into treadle.task_types table public.task_types;
  perform setval(seqrelid, seqstart, false)
  from pg_sequence
  where seqrelid::regclass::text like 'treadle.%';
  if to_regclass('public.test_clock') is not null then
    delete from public.test_clock;
  end if;
end;
$$
"""
# Settings that a session may have left behind.
AS_NEW = """
reset session authorization;
reset all;
unlisten *;
discard temp;
select pg_advisory_unlock_all()
"""


class Spares:
    """Connections that tests reuse: a new one would have to plan all functions again."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[Connection] = []
        self._taken: list[Connection] = []
        # To change its replication role makes a session plan again all that it knows, so that
        # this is not one of those that tests use.
        self._emptier: Connection | None = None

    def empty(self) -> None:
        """Leave the database as it was when it was made."""
        if self._emptier is None:
            self._emptier = psycopg.connect(self._url, autocommit=True)
        self._emptier.execute(EMPTY.encode())

    def take(self) -> Connection:
        """Return a connection in its initial state."""
        conn = self._idle.pop() if self._idle else psycopg.connect(self._url, autocommit=True)
        conn.execute(AS_NEW.encode())
        self._taken.append(conn)
        return conn

    def give_back(self) -> None:
        """Return a connection after a test; broken ones and open transactions are discarded."""
        for conn in self._taken:
            if conn.info.transaction_status == IDLE and len(self._idle) < MOST_SPARES:
                self._idle.append(conn)
            else:
                conn.close()
        self._taken.clear()

    def close(self) -> None:
        for conn in (*self._idle, *self._taken):
            conn.close()
        if self._emptier is not None:
            self._emptier.close()
