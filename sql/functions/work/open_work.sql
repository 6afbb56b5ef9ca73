-- open_work: make the queue of work items and a type where they are missing.
--
-- A type that comes this way has no breaker: people and their agents decide about each item.
--
-- Concurrency: two sessions that make the same: the second waits for the first.
-- Lock order:  queues, task_types.
-- Raises:      TR001 invalid argument.

create or replace function treadle.open_work(p_type text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (select from treadle.queues where queues.name = 'work') then
    perform treadle.define_queue('work');
  end if;
  if not exists (select from treadle.task_types where task_types.name = p_type) then
    perform treadle.define_type(p_type, '{"breaker": {"threshold": 0}}');
  end if;
end;
$$;

comment on function treadle.open_work(text) is
'Internal: makes what a work item needs, on first use.';

revoke all on function treadle.open_work(text) from public;
