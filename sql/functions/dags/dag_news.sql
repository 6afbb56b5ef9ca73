-- dag_news: which events a change of a DAG's counters is worth.
--
-- Its end, a task that gave up, coming back to life, and each tenth of the way.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.dag_news(
  p_was               text,
  p_status            text,
  p_tasks             integer,
  p_completed_before  integer,
  p_completed         integer,
  p_dead_before       integer,
  p_dead              integer
)
returns setof text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select news.kind
  from (
    values
    ('failed', p_dead > p_dead_before),
    ('reopened', p_was in ('completed', 'cancelled') and p_status in ('running', 'failed')),
    (
      'progress',
      p_completed < p_tasks
      and p_completed_before::bigint * 10 / p_tasks < p_completed::bigint * 10 / p_tasks
    ),
    ('completed', p_status = 'completed' and p_was <> 'completed'),
    ('cancelled', p_status = 'cancelled' and p_was <> 'cancelled')
  ) as news (kind, holds)
  where news.holds
$$;

comment on function treadle.dag_news(
  text, text, integer, integer, integer, integer, integer
) is 'Internal: failed, reopened, progress, completed or cancelled.';

revoke all on function treadle.dag_news(
  text, text, integer, integer, integer, integer, integer
) from public;
