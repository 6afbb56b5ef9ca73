-- close_questions: answer what was asked about a budget, where it has what was needed now.
--
-- Concurrency: waits of tasks that others hold are left to review_budgets.
-- Lock order:  tasks (never waited for), waits, steps.
-- Raises:      nothing.

create or replace function treadle.close_questions(p_budget bigint, p_actor text)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_now   timestamptz := treadle.clock();
  v_limit numeric;
  v_left  numeric;
  v_held  numeric;
  v_asked record;
  v_tasks uuid[] := '{}';
begin
  select budgets.limit_usd, treadle.budget_left(budgets, v_now), budgets.reserved_usd
  into v_limit, v_left, v_held
  from treadle.budgets
  where budgets.id = p_budget;

  for v_asked in
    select waits as wait, waits.task_id, waits.context, tasks.budget_id is not null as parked
    from treadle.waits
    inner join treadle.tasks on waits.task_id = tasks.id
    where waits.budget_id = p_budget and waits.status = 'open'
    order by waits.opened_at
    for no key update of tasks skip locked
  loop
    -- A task that has not started goes on waiting for what is reserved, without a question. One
    -- that ran would come and ask again.
    continue when not treadle.has_room(
      coalesce(v_left + case when v_asked.parked then v_held else 0 end, 'Infinity'),
      (v_asked.context ->> 'needed_usd')::numeric
    );
    perform treadle.end_wait(
      v_asked.wait, 'answered', to_jsonb(v_limit), p_actor,
      case
        when v_limit is null then 'the budget was removed'
        when p_actor is null then 'it has room again'
        else 'the limit was changed'
      end
    );
    v_tasks := v_tasks || v_asked.task_id;
  end loop;
  perform treadle.resume_tasks(v_tasks) where v_tasks <> '{}';
  return cardinality(v_tasks);
end;
$$;

comment on function treadle.close_questions(bigint, text) is
'Internal: ends the open questions about a budget that has room, and lets their tasks go on.';

revoke all on function treadle.close_questions(bigint, text) from public;
