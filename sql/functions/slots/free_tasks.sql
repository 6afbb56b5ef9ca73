-- free_tasks: claims are over: their slots and what they had reserved can go to others.
--
-- Nothing of a slot is locked here: who claims next, or the promoter, looks who can have it.
--
-- Concurrency: the caller holds the tasks.
-- Lock order:  budgets, by id, after tasks and dags.
-- Raises:      nothing.

create or replace function treadle.free_tasks(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  if p_ids is null then
    return;
  end if;
  perform treadle.request_slots(array_agg(distinct tasks.concurrency_key))
  from treadle.tasks
  where tasks.id = any (p_ids) and tasks.concurrency_key is not null
  having count(*) > 0;
  perform treadle.release_reservations(p_ids)
  from treadle.tasks
  where tasks.id = any (p_ids) and tasks.budgeted
  having count(*) > 0;
end;
$$;

comment on function treadle.free_tasks(uuid[]) is
'Internal: gives back what claims that are over had taken of keys and budgets.';

revoke all on function treadle.free_tasks(uuid[]) from public;
