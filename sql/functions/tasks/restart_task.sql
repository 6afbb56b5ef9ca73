-- restart_task: put a task back with a new round of attempts, changed where asked.
--
-- Ready, or pending where it waits for others or for its time.
--
-- Concurrency: the caller holds the row.
-- Lock order:  lanes, tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR202 unknown queue, TR203 unknown type,
--              TR102 illegal transition (another task has its key now).

create or replace function treadle.restart_task(
  p_task     treadle.tasks,
  p_changes  jsonb,
  p_now      timestamptz
)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_spec jsonb := treadle.edit_spec(p_task.spec, p_changes);
  v_new  treadle.tasks := treadle.prepare_task(
    treadle.own_options(p_task) || (p_changes - array['spec', 'set', 'unset']),
    p_task.created_at
  );
  v_status text := case
    when p_task.blocked_count > 0 or v_new.run_at > p_now then 'pending' else 'ready'
  end;
begin
  perform treadle.check_specs(
    array[v_spec],
    (select queues.max_spec_bytes from treadle.queues where queues.name = v_new.queue)
  );

  update treadle.tasks
  set
    status = case v_status
      when 'ready' then treadle.entry_status(v_new.concurrency_key, null) else v_status
    end,
    slot = case
      when v_status = 'ready' then treadle.entry_slot(v_new.concurrency_key, null)
    end,
    max_attempts = tasks.attempt + v_new.max_attempts,
    spec = v_spec,
    -- What a person says is no longer taken from another task's output.
    inputs = nullif(tasks.inputs - treadle.edited_arguments(p_changes), '{}'),
    queue = v_new.queue,
    type = v_new.type,
    lane_id = v_new.lane_id,
    rank = v_new.rank - tasks.critical_path * 1000000::bigint,
    priority = v_new.priority,
    timeout_s = v_new.timeout_s,
    capabilities = v_new.capabilities,
    assigned_agent = v_new.assigned_agent,
    deadline_at = v_new.deadline_at,
    rerank_at = v_new.rerank_at,
    gates = v_new.gates,
    concurrency_key = v_new.concurrency_key,
    max_cost_usd = v_new.max_cost_usd,
    max_tokens = v_new.max_tokens,
    on_budget = v_new.on_budget,
    capped = v_new.capped,
    ageing_rate = v_new.ageing_rate,
    retry = v_new.retry,
    validation = v_new.validation,
    report = v_new.report,
    models = v_new.models,
    fallback_models = v_new.fallback_models,
    retry_at = null,
    run_at = v_new.run_at,
    -- A delay that still counts; resolve_task sets that of a new one.
    delayed_at = case
      when v_new.run_at is not distinct from tasks.run_at then tasks.delayed_at
    end,
    completed_at = null,
    outcome = null,
    -- The result of the old round is not wanted any more.
    last_token = null
  where tasks.id = p_task.id;

  perform treadle.forget_expired(p_task.id) where p_task.durable;
  perform treadle.wake_queues(array[v_new.queue]);
  perform treadle.wake_promoter(v_new.run_at);
  perform treadle.request_slots(array[v_new.concurrency_key])
  where v_status = 'ready' and v_new.concurrency_key is not null;
  return case v_status
    when 'ready' then treadle.entry_status(v_new.concurrency_key, null) else v_status
  end;
exception
  when unique_violation then
    perform treadle.refuse(
      format('another task has the key %L of task %s now', p_task.idempotency_key, p_task.id),
      jsonb_build_object('task_id', p_task.id, 'idempotency_key', p_task.idempotency_key),
      'Let that one run, or cancel it first.',
      'TR102'
    );
end;
$$;

comment on function treadle.restart_task(treadle.tasks, jsonb, timestamptz) is
'Internal: gives a task another round.';

revoke all on function treadle.restart_task(treadle.tasks, jsonb, timestamptz) from public;
