-- validate_tasks: mark tasks as validating: they have an output that is being checked.
--
-- The claim continues: heartbeats renew it, and complete_tasks or fail_tasks end it.
--
-- Concurrency: rows are locked in id order; a superseded claim is reported as lost.
-- Lock order:  tasks.
-- Raises:      TR001 invalid argument.

create or replace function treadle.validate_tasks(p_ids uuid[], p_tokens uuid[])
returns table (id uuid, verdict text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := treadle.clock();
  v_rows tid[];
begin
  perform treadle.check_array_lengths(p_ids, p_tokens);
  perform treadle.ensure_durable();

  with held as materialized (
    select tasks.id
    from unnest(p_ids, p_tokens) as claim (id, token)
    inner join treadle.tasks on claim.id = tasks.id and claim.token = tasks.claim_token
    where tasks.status in ('claimed', 'running')
    order by tasks.id
    for no key update of tasks
  ),

  validating as (
    update treadle.tasks
    set
      status = 'validating',
      started_at = coalesce(tasks.started_at, tasks.claimed_at),
      heartbeat_at = v_now,
      lease_until = treadle.renewed_lease(tasks, agents, v_now)
    from treadle.agents
    where
      -- By id, not by ctid: a row that changed while its lock was waited for has a new ctid.
      tasks.id = any (array(select held.id from held))
      and tasks.agent_id = agents.id
    returning tasks.ctid
  )

  select array_agg(validating.ctid) into v_rows from validating;

  perform treadle.audit_tasks(v_rows, 'validation_started', null);
  return query select verdicts.* from treadle.claim_verdicts(p_ids, p_tokens) as verdicts;
end;
$$;

comment on function treadle.validate_tasks(uuid[], uuid[]) is
'Mark running tasks as validating; returns for each whether the claim is still valid.';

grant execute on function treadle.validate_tasks(uuid[], uuid[]) to treadle_worker;
