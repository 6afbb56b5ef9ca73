-- answer_budget: do what the answer to a question about money says.
--
-- A number is the new limit of the budget, or of the task where its own limit was passed, in
-- dollars or tokens; false gives the task up.
--
-- Concurrency: the caller holds the task, and for false what falls with it.
-- Lock order:  tasks, dags, waits, budgets; after tasks.
-- Raises:      TR001 invalid argument.

create or replace function treadle.answer_budget(
  p_wait   treadle.waits,
  p_value  jsonb,
  p_actor  text
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_usd    numeric := case when p_value <> 'false' then (p_value #>> '{}')::numeric end;
  v_task   treadle.tasks;
  v_budget treadle.budgets;
  v_reason text := format('%s said no to more money', p_actor);
begin
  if p_wait.context ->> 'limit' <> 'max_tokens' then
    perform treadle.check_limit(coalesce(v_usd, 0), null, null);
  end if;
  select tasks.* into v_task from treadle.tasks where tasks.id = p_wait.task_id;
  if v_usd is null and v_task.claim_token is not null then
    perform ended.id
    from treadle.fail_tasks(
      array[v_task.id], array[v_task.claim_token], array['budget_exceeded'], array[v_reason],
      array['fail']
    ) as ended;
  elsif v_usd is null and v_task.completed_at is null then
    perform treadle.bury_tasks(array[v_task.id], array[v_reason], p_actor, treadle.clock());
  elsif v_usd is not null and p_wait.budget_id is not null then
    perform treadle.lock_budgets(array[p_wait.budget_id], true);
    perform treadle.roll_budgets(array[p_wait.budget_id], treadle.clock());
    select budgets.* into v_budget from treadle.budgets where budgets.id = p_wait.budget_id;
    perform treadle.check_spent(v_budget, v_usd);
    perform treadle.change_budget(v_budget, v_usd, null, p_actor) where v_budget.id is not null;
  elsif p_wait.context ->> 'limit' = 'max_tokens' then
    update treadle.tasks set max_tokens = least(v_usd, 1e18) where tasks.id = v_task.id;
  elsif v_usd < v_task.cost_usd then
    perform treadle.refuse(
      format(
        'the task has cost %s already, more than %s', treadle.dollars(v_task.cost_usd),
        treadle.dollars(v_usd)
      ),
      jsonb_build_object('argument', 'answer', 'cost_usd', v_task.cost_usd),
      'Answer with at least what it has cost, or false.'
    );
  else
    update treadle.tasks set max_cost_usd = v_usd where tasks.id = v_task.id;
  end if;
end;
$$;

comment on function treadle.answer_budget(treadle.waits, jsonb, text) is
'Internal: raises a limit or gives a task up, as a person said.';

revoke all on function treadle.answer_budget(treadle.waits, jsonb, text) from public;
