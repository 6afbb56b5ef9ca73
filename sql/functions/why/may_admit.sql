-- may_admit: whether the next claim may let in tasks that wait for a slot or for money.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.may_admit()
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  return exists (
    select
    from treadle.admissions
    inner join treadle.tasks on admissions.key = tasks.concurrency_key
    where admissions.kind = 'slot' and tasks.slot = 'waiting'
  )
  or exists (
    select
    from treadle.admissions
    inner join treadle.tasks on tasks.budget_id = admissions.key::bigint
    where admissions.kind = 'budget' and tasks.status = 'pending'
  );
end;
$$;

comment on function treadle.may_admit() is
'Internal: somebody asked for a look at keys or budgets for which tasks wait.';

revoke all on function treadle.may_admit() from public;
