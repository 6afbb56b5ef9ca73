-- complete_tasks: store the results of tasks and end them.
--
-- Accepted from the claim on the row, and from the last claim that ended if nobody has claimed
-- since and the task has not ended: a late answer saves paid work. Of each task it says completed,
-- already (a repeat), stale (superseded), or report_required; these two changed nothing.
--
-- Concurrency: rows and who depends on them are locked in id order, as one set; the fence is
--              checked on the locked row, and edges are consumed after it.
-- Lock order:  tasks, dags.
-- Raises:      TR001 invalid argument, TR002 too large.

create or replace function treadle.complete_tasks(
  p_ids      uuid[],
  p_tokens   uuid[],
  p_outputs  jsonb[] default null,
  p_run_ms   integer[] default null,
  p_reports  jsonb[] default null
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
  v_now   timestamptz := treadle.clock();
  v_types text[] := treadle.demanding_types();
  v_done  record;
begin
  perform treadle.check_pairs(p_ids, p_tokens);
  perform treadle.check_outputs(p_ids, p_outputs) where p_outputs is not null;
  perform treadle.check_reports(p_ids, p_reports) where p_reports is not null;
  perform treadle.keep_durable();
  perform treadle.lock_with_dependents(p_ids);
  with held as materialized (
    select
      tasks.id, claim.output, claim.run_ms, claim.report,
      claim.report is null and treadle.lacks_report(tasks, v_types) as bare
    from unnest(p_ids, p_tokens, p_outputs, p_run_ms, p_reports)
      as claim (id, token, output, run_ms, report)
    inner join treadle.tasks on claim.id = tasks.id
    where
      claim.token = tasks.claim_token
      or (claim.token = tasks.last_token and tasks.completed_at is null)
    order by tasks.id
    for no key update of tasks
  ),

  done as (
    update treadle.tasks
    set
      status = 'completed', outcome = 'completed', completed_at = v_now,
      output = held.output, decision_report = held.report,
      completed_by = coalesce(tasks.agent_id, treadle.agent_of(tasks.id, tasks.last_token)),
      started_at = coalesce(
        tasks.started_at,
        greatest(tasks.claimed_at, v_now - make_interval(secs => held.run_ms / 1000.0))
      ),
      last_token = coalesce(tasks.claim_token, tasks.last_token),
      agent_id = null, claim_token = null, lease_until = null, retry_at = null, slot = null,
      budget_id = null, failure_class = null, failure_reason = null
    from held
    -- Not by ctid: a row that changed while it was waited for would not be found there.
    where tasks.id = held.id and not held.bare
    returning
      tasks.ctid, tasks.id, tasks.dag_id, tasks.durable, treadle.is_counted(tasks) as counted
  )

  select
    array_agg(done.ctid) as rows, array_agg(done.id) as ids,
    array_agg(done.dag_id) filter (where done.dag_id is not null) as dags,
    array_agg(done.id) filter (where done.durable) as durable,
    array_agg(done.id) filter (where done.counted) as counted,
    array(select held.id from held where held.bare) as bare
  into v_done
  from done;

  perform treadle.audit_tasks(v_done.rows, 'completed', null);
  perform treadle.settle_completed(v_done.ids, v_done.dags, v_done.durable, v_done.counted, v_now);
  return query
  select
    ended.id, case when ended.id = any (v_done.bare) then 'report_required' else ended.verdict end
  from treadle.end_verdicts(p_ids, p_tokens, v_done.ids, 'completed') as ended;
end;
$$;

comment on function treadle.complete_tasks(uuid[], uuid[], jsonb[], integer[], jsonb[]) is
'Complete tasks with their outputs; says of each: completed, already, stale, report_required.';

revoke all on function treadle.complete_tasks(uuid[], uuid[], jsonb[], integer[], jsonb[])
from public;
grant execute on function
treadle.complete_tasks(uuid[], uuid[], jsonb[], integer[], jsonb[]) to treadle_worker;
