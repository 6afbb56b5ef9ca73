-- ask_for_money: open the question of a task that a budget, or its own limit, has no more for.
--
-- One that the task has open about the same is asked again instead.
--
-- Concurrency: the caller holds the task.
-- Lock order:  waits, after tasks.
-- Raises:      nothing.

create or replace function treadle.ask_for_money(
  p_task     treadle.tasks,
  p_budget   bigint,
  p_needed   numeric,
  p_reason   text,
  p_awaited  boolean,
  p_tokens   boolean default false
)
returns uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  -- The one answer is money, the other is no.
  c_schema constant jsonb := '{"anyOf": [{"type": "number", "minimum": 0}, {"enum": [false]}]}';
  v_wait   treadle.waits;
begin
  select waits.* into v_wait
  from treadle.waits
  where
    waits.task_id = p_task.id and waits.kind = 'budget' and waits.status = 'open'
    and waits.budget_id is not distinct from p_budget;
  if found then
    return v_wait.id;
  end if;

  insert into treadle.waits (
    task_id, name, kind, awaited, question, context, schema, opened_at, budget_id
  )
  select
    p_task.id,
    'budget:' || 1 + (select count(*) from treadle.waits where waits.task_id = p_task.id),
    'budget', p_awaited,
    p_reason || case
      when p_tokens then '. How many may it use? Or false, to give it up.'
      when p_budget is null then '. What may the task cost, in dollars? Or false, to give it up.'
      else '. What is the new limit, in dollars? Or false, to give the task up.'
    end,
    jsonb_build_object(
      'needed_usd', p_needed, 'cost_usd', p_task.cost_usd,
      'limit', case
        when p_tokens then 'max_tokens' when p_budget is null then 'max_cost_usd' else 'budget'
      end
    ) || coalesce(
      (select treadle.budget_facts(budgets) from treadle.budgets where budgets.id = p_budget), '{}'
    ),
    c_schema, treadle.clock(), p_budget
  returning waits.* into v_wait;
  update treadle.tasks set durable = true where tasks.id = p_task.id and not tasks.durable;
  perform treadle.record_wait(
    v_wait, 'opened', p_task.agent_id, jsonb_build_object('question', v_wait.question)
  );
  return v_wait.id;
end;
$$;

comment on function treadle.ask_for_money(
  treadle.tasks, bigint, numeric, text, boolean, boolean
) is
'Internal: the wait of kind budget of a task; a number answers it, or false.';

revoke all on function treadle.ask_for_money(
  treadle.tasks, bigint, numeric, text, boolean, boolean
) from public;
