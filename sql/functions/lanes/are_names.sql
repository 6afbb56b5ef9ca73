-- are_names: whether a queue and a type exist.
--
-- In plpgsql, which keeps its plans: every task that is enqueued comes by.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.are_names(p_queue text, p_type text)
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return
    exists (select from treadle.queues where queues.name = p_queue)
    and exists (select from treadle.task_types where task_types.name = p_type);
end;
$$;

comment on function treadle.are_names(text, text) is
'Internal: whether tasks of this queue and type can be.';

revoke all on function treadle.are_names(text, text) from public;
