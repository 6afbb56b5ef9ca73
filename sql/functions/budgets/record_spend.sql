-- record_spend: record the paid calls of a running task, each call once.
--
-- select treadle.record_spend(id, token, '[{"call_id": "msg_01", "usd": 0.012}]');
--
-- A call whose id is already in the ledger is not counted again. The call also renews the lease. It
-- returns what the task has cost, what it may cost, what is left for it, and a verdict: ok, or ask
-- or fail if a limit is reached; see reserve_spend.
--
-- Concurrency: see lock_claim; the calls of one task are counted one after another.
-- Lock order:  tasks, spend, budgets by id, reservations.
-- Raises:      TR001 invalid argument, TR101 claim lost.

-- check_calls: check paid calls and their costs.
--
-- Numbers may be given as text: some languages encode exact decimals that way.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_calls(p_calls jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_keys   constant text[] := array['call_id', 'usd', 'model', 'input_tokens', 'output_tokens'];
  c_number constant text := '^[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$';
  v_at     bigint;
  v_call   jsonb;
  v_wrong  text;
begin
  if jsonb_typeof(p_calls) is distinct from 'array' then
    v_wrong := 'calls must be a JSON array';
  else
    for v_at, v_call in
      select given.at - 1, jsonb_strip_nulls(given.call)
      from jsonb_array_elements(p_calls) with ordinality as given (call, at)
    loop
      v_wrong := case
        when jsonb_typeof(v_call) <> 'object' then 'must be a JSON object'
        when (v_call - c_keys) <> '{}'
          then format(
            'has the unknown key %s',
            (
              select quote_literal(treadle.excerpt_name(min(keys.name)))
              from jsonb_object_keys(v_call - c_keys) as keys (name)
            )
          )
        when not v_call ?| array['usd', 'input_tokens', 'output_tokens']
          then 'has neither usd nor tokens'
        when v_call ->> 'usd' !~ c_number
          then format('has usd %s, not a number of 0 or more', treadle.excerpt(v_call -> 'usd'))
        when (v_call ->> 'usd')::numeric > 1000000
          then format('has usd %s, which is more than 1000000', treadle.excerpt(v_call -> 'usd'))
        when exists (
          select from jsonb_each(v_call) as part
          where
            part.key in ('input_tokens', 'output_tokens')
            and not (
              jsonb_typeof(part.value) = 'number'
              and part.value::text ~ '^[0-9]{1,12}$'
            )
        ) then 'has tokens that are not a whole number from 0 to 999999999999'
        when exists (
          select from jsonb_each(v_call) as part
          where
            part.key in ('call_id', 'model')
            and not (
              jsonb_typeof(part.value) = 'string'
              and octet_length(part.value #>> '{}') between 1 and 200
            )
        ) then 'has a call_id or model that is not a text of 1 to 200 bytes'
      end;
      if v_wrong is not null then
        v_wrong := format('call %s %s', v_at, v_wrong);
        exit;
      end if;
    end loop;
  end if;

  if v_wrong is not null then
    perform treadle.raise_error(
      v_wrong,
      jsonb_build_object('argument', 'calls', 'index', v_at),
      'A call is {"call_id": "...", "usd": 0.01, "model": "...", "input_tokens": 900, '
      '"output_tokens": 100}; usd or tokens are required.'
    );
  end if;
end;
$$;

-- emit_budget_events: emit events for budgets that are four fifths spent or fully spent.
--
-- Concurrency: the caller has locked the budgets.
-- Lock order:  budgets; appends to events.
create or replace function treadle.emit_budget_events(
  p_ids   bigint[],
  p_task  uuid,
  p_usd   numeric,
  p_now   timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  insert into treadle.events (at, kind, task_id, data)
  select p_now, 'budget.' || news.kind, p_task, treadle.budget_json(budgets)
  from treadle.budgets
  cross join lateral (
    select 'warned' as kind
    where budgets.warned_at is null and budgets.spent_usd >= 0.8 * budgets.limit_usd
    union all
    select 'exhausted'
    where
      budgets.spent_usd >= budgets.limit_usd
      and budgets.spent_usd - p_usd < budgets.limit_usd
  ) as news
  where budgets.id = any (p_ids);

  update treadle.budgets
  set warned_at = p_now
  where
    budgets.id = any (p_ids) and budgets.warned_at is null
    and budgets.spent_usd >= 0.8 * budgets.limit_usd;
end;
$$;

-- settle_spend: move what a task has paid from reserved to spent, in every budget it draws on.
--
-- An amount above the reservation is counted as well, since it was paid.
--
-- Concurrency: the caller has locked the task; the budgets are locked, then written.
-- Lock order:  budgets, by id, after tasks; reservations, events.
create or replace function treadle.settle_spend(p_task treadle.tasks, p_usd numeric)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_now timestamptz := treadle.clock();
  v_ids bigint[] := treadle.budgets_of(p_task, p_task.agent_id);
begin
  if v_ids = '{}' then
    return;
  end if;
  v_ids := treadle.lock_budgets(v_ids, true);
  perform treadle.roll_budgets(v_ids, v_now);

  with drawn as (
    update treadle.reservations
    set usd = reservations.usd - least(reservations.usd, p_usd)
    from treadle.reservations as before
    where
      reservations.task_id = p_task.id and reservations.budget_id = any (v_ids)
      and before.task_id = reservations.task_id and before.budget_id = reservations.budget_id
    returning reservations.budget_id, before.usd - reservations.usd as usd
  )

  update treadle.budgets
  set
    spent_usd = budgets.spent_usd + p_usd,
    reserved_usd = budgets.reserved_usd - coalesce(
      (select drawn.usd from drawn where drawn.budget_id = budgets.id), 0
    )
  where budgets.id = any (v_ids);
  perform treadle.emit_budget_events(v_ids, p_task.id, p_usd, v_now);
end;
$$;

-- add_spend: record paid calls in the ledger, the task and its budgets; returns the new cost.
--
-- A paid call is always recorded, whatever limit it passes.
--
-- A call counts once per id. Calls of a step without an id get one from the claim and the step, so
-- that saving the step again adds nothing.
--
-- Concurrency: the caller has locked the task.
-- Lock order:  spend, budgets by id, reservations, gates by key; after tasks.
-- Raises:      TR001 invalid argument.
create or replace function treadle.add_spend(p_task treadle.tasks, p_step text, p_calls jsonb)
returns numeric
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_new record;
begin
  perform treadle.check_calls(p_calls);

  with added as (
    insert into treadle.spend (
      task_id, call_id, dag_id, project_id, agent_id, type, attempt, step, model, usd,
      input_tokens, output_tokens, at
    )
    select
      p_task.id,
      coalesce(
        given.call ->> 'call_id',
        format('%s.%s', md5(format('%s %s', p_task.claim_token, p_step)), given.at) || case
          when p_step is null then '.' || gen_random_uuid() else ''
        end
      ),
      p_task.dag_id, p_task.project_id, p_task.agent_id, p_task.type, p_task.attempt, p_step,
      given.call ->> 'model',
      coalesce((given.call ->> 'usd')::numeric, 0),
      coalesce((given.call ->> 'input_tokens')::bigint, 0),
      coalesce((given.call ->> 'output_tokens')::bigint, 0),
      treadle.clock()
    from jsonb_array_elements(p_calls) with ordinality as given (call, at)
    on conflict (task_id, call_id) do nothing
    returning spend.usd, spend.input_tokens, spend.output_tokens
  )

  select
    count(*) as calls,
    coalesce(sum(added.usd), 0) as usd,
    sum(added.input_tokens) as input_tokens,
    sum(added.output_tokens) as output_tokens
  into v_new
  from added;

  if v_new.calls = 0 then
    return 0;
  end if;
  update treadle.tasks
  set cost_usd = tasks.cost_usd + v_new.usd
  where tasks.id = p_task.id;
  if v_new.usd > 0 and exists (select from treadle.budgets) then
    perform treadle.settle_spend(p_task, v_new.usd);
  end if;
  if exists (select from treadle.gates where gates.unit in ('tokens', 'usd')) then
    perform treadle.charge_spend(p_task.id, v_new.usd, v_new.input_tokens + v_new.output_tokens);
  end if;
  return v_new.usd;
exception
  when numeric_value_out_of_range then
    perform treadle.raise_error(
      format('the cost of task %s would exceed the maximum', p_task.id),
      jsonb_build_object('argument', 'calls', 'task_id', p_task.id, 'cost_usd', p_task.cost_usd),
      'Costs are in dollars; a task may cost less than 100000000.'
    );
end;
$$;

create or replace function treadle.record_spend(
  p_id     uuid,
  p_token  uuid,
  p_calls  jsonb,
  out cost_usd numeric,
  out max_cost_usd numeric,
  out left_usd numeric,
  out verdict text,
  out reason text
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_task  treadle.tasks := treadle.lock_claim(p_id, p_token);
  v_found record;
begin
  perform treadle.add_spend(v_task, null, p_calls);
  select tasks.* into v_task from treadle.tasks where tasks.id = p_id;
  v_found := treadle.budget_verdict(v_task, 0);
  cost_usd := v_task.cost_usd;
  max_cost_usd := v_task.max_cost_usd;
  left_usd := v_found.left_usd;
  verdict := v_found.verdict;
  reason := v_found.reason;
end;
$$;

comment on function treadle.record_spend(uuid, uuid, jsonb) is
'Record paid calls of a claimed task, each once by its call_id; returns its cost and what is left.';

grant execute on function treadle.record_spend(uuid, uuid, jsonb) to treadle_worker;
