-- request_budgets: say that tasks which some budgets had no room for may be able to go on.
--
-- Concurrency: the caller holds the budgets: who parks a task holds its budget as well, so what
--              is parked here is all there is.
-- Lock order:  none; appends.
-- Raises:      nothing.

create or replace function treadle.request_budgets(p_ids bigint[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_waiting bigint[];
  v_queues  text[];
begin
  select array_agg(distinct asked.id), array_agg(distinct next.queue)
  into v_waiting, v_queues
  from unnest(p_ids) as asked (id)
  cross join lateral (
    select tasks.queue
    from treadle.tasks
    where tasks.budget_id = asked.id
    order by tasks.rank
    limit 1
  ) as next;
  if v_waiting is null then
    -- One that ran may have asked.
    perform treadle.wake_promoter(treadle.clock())
    where exists (
      select from treadle.waits where waits.budget_id = any (p_ids) and waits.status = 'open'
    );
    return;
  end if;

  insert into treadle.admissions (kind, key)
  select 'budget', waiting.id::text from unnest(v_waiting) as waiting (id);
  perform treadle.wake_queues(v_queues);
  perform treadle.wake_promoter(treadle.clock());
end;
$$;

comment on function treadle.request_budgets(bigint[]) is
'Internal: asks who claims next to look at the tasks that these budgets had no room for.';

revoke all on function treadle.request_budgets(bigint[]) from public;
