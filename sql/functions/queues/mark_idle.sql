-- mark_idle: say that a worker waits for tasks of these queues.
--
-- Written at most once in 15 seconds for a queue, whatever the number of workers.
--
-- Concurrency: queues in order of name; a row that another worker is writing is left to it.
-- Lock order:  idle_queues.
-- Raises:      nothing.

create or replace function treadle.mark_idle(p_queues text[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
begin
  if (
    select count(*)
    from treadle.idle_queues
    where
      idle_queues.queue = any (p_queues)
      and idle_queues.idle_until > v_now + interval '15 seconds'
  ) = cardinality(p_queues) then
    return;
  end if;

  insert into treadle.idle_queues (queue, idle_until)
  select distinct given.queue, v_now + interval '30 seconds'
  from unnest(p_queues) as given (queue)
  order by given.queue
  on conflict (queue) do update set idle_until = excluded.idle_until;
end;
$$;

comment on function treadle.mark_idle(text[]) is
'Internal: producers notify the queues that are marked here.';

revoke all on function treadle.mark_idle(text[]) from public;
