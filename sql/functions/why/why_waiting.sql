-- why_waiting: what a task waits for by itself, before any agent could have it.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_waiting(p_task treadle.tasks, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_task.status = 'ready' then
    return;
  end if;
  return query select * from treadle.why_held(p_task);
  return query select * from treadle.why_answers(p_task, p_now);
  return query select * from treadle.why_dependencies(p_task);
  return query select * from treadle.why_time(p_task, p_now);
  return query select * from treadle.why_slot(p_task);
end;
$$;

comment on function treadle.why_waiting(treadle.tasks, timestamptz) is
'Internal: people, answers, other tasks, its time, a slot: what a task that is not ready lacks.';

revoke all on function treadle.why_waiting(treadle.tasks, timestamptz) from public;
