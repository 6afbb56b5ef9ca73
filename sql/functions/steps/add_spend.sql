-- add_spend: enter paid calls in the ledger, the task and its budgets; returns the new dollars.
--
-- What was paid is never refused, whatever it passes.
--
-- A call counts once by its id. Calls of a step that have no id get one from the claim and the
-- step: saving the step again costs nothing more.
--
-- Concurrency: the caller holds the task.
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
  set
    cost_usd = tasks.cost_usd + v_new.usd,
    input_tokens = tasks.input_tokens + v_new.input_tokens,
    output_tokens = tasks.output_tokens + v_new.output_tokens
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
    perform treadle.refuse(
      format('task %s cannot cost that much more', p_task.id),
      jsonb_build_object('argument', 'calls', 'task_id', p_task.id, 'cost_usd', p_task.cost_usd),
      'Costs are dollars, below 100000000 for a task.'
    );
end;
$$;

comment on function treadle.add_spend(treadle.tasks, text, jsonb) is
'Internal: counts paid calls of a locked task, each once; returns the dollars that were new.';

revoke all on function treadle.add_spend(treadle.tasks, text, jsonb) from public;
