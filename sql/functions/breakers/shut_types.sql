-- shut_types: the types of which nothing is claimed now: paused, or their breaker is not closed.
--
-- The one probe of a half-open breaker is claimed apart, see pick_probe. Without a setting of its
-- own, so that it becomes part of the query that calls it.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.shut_types()
returns text[]
language sql
stable
as $$
  select array(
    select task_types.name from treadle.task_types where task_types.paused_at is not null
    union
    select breakers.type from treadle.breakers where breakers.state <> 'closed'
  )
$$;

comment on function treadle.shut_types() is
'Internal: types that are paused or whose breaker is open or half-open.';

revoke all on function treadle.shut_types() from public;
