-- heartbeat_tasks: renew the leases of running tasks, record progress, and report lost claims.
--
-- A claim that has not started is not renewed: it must start within its claim_ttl_s. Its progress
-- is recorded.
--
-- Concurrency: rows are locked in id order; a superseded claim is reported as lost.
-- Lock order:  tasks.
-- Raises:      TR001 invalid argument.

create or replace function treadle.heartbeat_tasks(
  p_ids       uuid[],
  p_tokens    uuid[],
  p_progress  jsonb[] default null
)
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
begin
  perform treadle.check_array_lengths(p_ids, p_tokens);
  if p_progress is not null then
    perform treadle.check_array_lengths(p_ids, null, 'progress', cardinality(p_progress));
  end if;

  with held as materialized (
    select tasks.id, claim.progress
    from unnest(p_ids, p_tokens, p_progress) as claim (id, token, progress)
    inner join treadle.tasks on claim.id = tasks.id and claim.token = tasks.claim_token
    where tasks.started_at is not null or claim.progress is not null
    order by tasks.id
    for no key update of tasks
  )

  update treadle.tasks
  set
    heartbeat_at = case when tasks.started_at is null then tasks.heartbeat_at else v_now end,
    lease_until = case
      when tasks.started_at is null then tasks.lease_until
      else treadle.renewed_lease(tasks, agents, v_now)
    end,
    progress = coalesce(held.progress, tasks.progress)
  from held, treadle.agents
  -- By id, not by ctid: a row that changed while its lock was waited for has a new ctid.
  where tasks.id = held.id and tasks.agent_id = agents.id;

  return query select verdicts.* from treadle.claim_verdicts(p_ids, p_tokens) as verdicts;
end;
$$;

comment on function treadle.heartbeat_tasks(uuid[], uuid[], jsonb[]) is
'Renew leases and record progress; returns for each claim: ok, lost or cancelled.';

grant execute on function treadle.heartbeat_tasks(uuid[], uuid[], jsonb[]) to treadle_worker;
