-- budget_waits: ask people to raise a budget, and apply their answers.

-- open_budget_wait: open a question for a task that a budget, or its own limit, cannot pay.
--
-- If the task already has an open question about the same budget, that question is asked again.
--
-- Concurrency: the caller has locked the task.
-- Lock order:  waits, after tasks.
create or replace function treadle.open_budget_wait(
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
  -- The answer is an amount of money, or false to refuse.
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
      when p_tokens then '. How many may it use? Answer false to give the task up.'
      when p_budget is null then '. What may the task cost, in dollars? Answer false to give it up.'
      else '. What is the new limit, in dollars? Answer false to give the task up.'
    end,
    jsonb_build_object(
      'needed_usd', p_needed, 'cost_usd', p_task.cost_usd,
      'limit', case
        when p_tokens then 'max_tokens' when p_budget is null then 'max_cost_usd' else 'budget'
      end
    ) || coalesce(
      (select treadle.budget_json(budgets) from treadle.budgets where budgets.id = p_budget), '{}'
    ),
    c_schema, treadle.clock(), p_budget
  returning waits.* into v_wait;
  update treadle.tasks set durable = true where tasks.id = p_task.id and not tasks.durable;
  perform treadle.emit_wait_event(
    v_wait, 'opened', p_task.agent_id, jsonb_build_object('question', v_wait.question)
  );
  return v_wait.id;
end;
$$;

-- close_budget_waits: close the questions about a budget that now has the requested amount.
--
-- Concurrency: waits of locked tasks are left to review_budgets.
-- Lock order:  tasks (skips locked rows), waits, steps.
create or replace function treadle.close_budget_waits(p_budget bigint, p_actor text)
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
    -- A task that has not started waits for reserved money to be released and needs no question. A
    -- task that was running would start and ask again.
    continue when not treadle.fits_budget(
      coalesce(v_left + case when v_asked.parked then v_held else 0 end, 'Infinity'),
      (v_asked.context ->> 'needed_usd')::numeric
    );
    perform treadle.end_wait(
      v_asked.wait, 'answered', to_jsonb(v_limit), p_actor,
      case
        when v_limit is null then 'the budget was removed'
        when p_actor is null then 'the budget has room again'
        else 'the limit was changed'
      end
    );
    v_tasks := v_tasks || v_asked.task_id;
  end loop;
  perform treadle.resume_tasks(v_tasks) where v_tasks <> '{}';
  return cardinality(v_tasks);
end;
$$;

-- dead_letter_unfunded: dead-letter tasks that were not claimed and that no budget can pay.
--
-- Concurrency: the caller has locked the tasks and their known dependents.
-- Lock order:  tasks, dags, then the history.
create or replace function treadle.dead_letter_unfunded(
  p_ids      uuid[],
  p_reasons  text[],
  p_actor    text,
  p_now      timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  with dead as (
    update treadle.tasks
    set
      status = 'dead_lettered',
      completed_at = p_now,
      failure_class = 'budget_exceeded',
      failure_reason = left(given.reason, 2000),
      slot = null,
      budget_id = null
    from unnest(p_ids, p_reasons) as given (id, reason)
    where tasks.id = given.id
    returning tasks.*
  ),

  letters as (
    insert into treadle.dead_letters (
      task_id, dead_lettered_at, attempts, class, reason, total_cost_usd, about, fingerprint
    )
    select
      dead.id, p_now, dead.attempt, dead.failure_class, dead.failure_reason,
      dead.cost_usd, said.about, treadle.error_fingerprint(dead.failure_class, said.about)
    from dead
    cross join lateral (
      select
        coalesce(treadle.error_pattern(dead.failure_reason), dead.failure_class) as about
      offset 0
    ) as said
    returning dead_letters.task_id, dead_letters as letter
  )

  insert into treadle.events (at, kind, task_id, queue, actor, data)
  select
    p_now, 'task.dead_lettered', dead.id, dead.queue, p_actor,
    jsonb_build_object('attempt', dead.attempt) || treadle.dead_letter_json(letters.letter)
  from dead
  inner join letters on dead.id = letters.task_id;
  perform treadle.propagate_ended(p_ids, p_now);
end;
$$;

-- answer_budget: apply the answer to a question about a budget.
--
-- A number is the new limit of the budget, in dollars. If the task reached its own limit, the
-- number is the new limit of the task, in dollars or tokens. false gives the task up.
--
-- Concurrency: the caller has locked the task; for false also its dependents.
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
  v_reason text := format('%s refused to raise the limit', p_actor);
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
    perform treadle.dead_letter_unfunded(
      array[v_task.id], array[v_reason], p_actor, treadle.clock()
    );
  elsif v_usd is not null and p_wait.budget_id is not null then
    perform treadle.lock_budgets(array[p_wait.budget_id], true);
    perform treadle.roll_budgets(array[p_wait.budget_id], treadle.clock());
    select budgets.* into v_budget from treadle.budgets where budgets.id = p_wait.budget_id;
    perform treadle.check_spent(v_budget, v_usd);
    perform treadle.change_budget(v_budget, v_usd, null, p_actor) where v_budget.id is not null;
  elsif p_wait.context ->> 'limit' = 'max_tokens' then
    update treadle.task_options
    set max_tokens = least(v_usd, 1e18)
    where task_options.task_id = v_task.id;
  elsif v_usd < v_task.cost_usd then
    perform treadle.raise_error(
      format(
        'the task has already cost %s, which is more than %s', treadle.format_usd(v_task.cost_usd),
        treadle.format_usd(v_usd)
      ),
      jsonb_build_object('argument', 'answer', 'cost_usd', v_task.cost_usd),
      'Answer with at least what the task has cost, or with false.'
    );
  else
    update treadle.tasks set max_cost_usd = v_usd where tasks.id = v_task.id;
  end if;
end;
$$;
