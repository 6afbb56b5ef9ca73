-- complete_tasks: store the results of tasks and complete them.
--
-- A result is accepted from the current claim, and from the last claim that ended if no agent has
-- claimed the task since and it has not ended: a late result saves paid work. Returns for each task
-- completed, already (a repeat), stale (superseded) or report_required; the last two change
-- nothing.
--
-- Concurrency: the rows and their dependents are locked in id order, as one set; the token is
-- checked on the locked row, and edges are read after that.
-- Lock order:  tasks, results, dags.
-- Raises:      TR001 invalid argument, TR002 too large.

-- check_outputs: check that each task has an output and that none is too large.
--
-- Raises:      TR001 invalid argument, TR002 too large.
create or replace function treadle.check_outputs(p_ids uuid[], p_outputs jsonb[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_max constant integer := 16777216;
  v_bytes integer;
  v_id    uuid;
begin
  perform treadle.check_array_lengths(p_ids, null, 'outputs', cardinality(p_outputs));
  select pg_column_size(given.output), given.id
  into v_bytes, v_id
  from unnest(p_ids, p_outputs) as given (id, output)
  where pg_column_size(given.output) > c_max
  limit 1;
  if found then
    perform treadle.raise_error(
      format('the output of task %s has %s bytes, %s are allowed', v_id, v_bytes, c_max),
      jsonb_build_object('task_id', v_id, 'bytes', v_bytes, 'max_bytes', c_max),
      'Store the data elsewhere and return a reference to it.',
      'TR002'
    );
  end if;
end;
$$;

-- lacks_report: return whether a task needs a decision report that it does not have.
create or replace function treadle.lacks_report(p_task treadle.tasks, p_types text[])
returns boolean
language sql
stable
return case
  when treadle.has_requirements(p_task, p_types)
    then coalesce((treadle.attempt_requirements(p_task)).report, false)
  else false
end;

-- store_results: store the results for consumers, and the decision reports, of completed tasks.
--
-- Concurrency: the caller has completed the tasks.
-- Lock order:  results, new rows only.
create or replace function treadle.store_results(
  p_ids      uuid[],
  p_reports  jsonb[],
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
  insert into treadle.results (task_id, completed_at, consumer, decision_report)
  select done.id, p_now, task_options.consumer, done.report
  from unnest(p_ids, p_reports) as done (id, report)
  left join treadle.task_options on done.id = task_options.task_id
  where task_options.consumer is not null or done.report is not null;
end;
$$;

-- propagate_completed: apply the consequences of completed tasks to other tasks.
--
-- Concurrency: the caller has locked the tasks and their known dependents.
-- Lock order:  tasks, dags, then the rest.
create or replace function treadle.propagate_completed(
  p_ids      uuid[],
  p_dags     uuid[],
  p_durable  uuid[],
  p_counted  uuid[],
  p_now      timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_ids is null then
    return;
  end if;
  if exists (
    select from treadle.dependencies
    where dependencies.depends_on = any (p_ids) and dependencies.met_at is null
  ) then
    perform treadle.satisfy_dependencies(p_ids, 'completed', p_now);
  end if;
  if p_dags is not null then
    perform treadle.update_dag_counters(
      p_dags, null, array_fill('completed'::text, array[cardinality(p_dags)]), p_now
    );
  end if;
  perform treadle.emit_completed_events(p_ids, p_now);
  if p_durable is not null then
    perform treadle.close_waits(p_durable);
  end if;
  if exists (select from treadle.breakers) then
    perform treadle.record_success(p_ids, p_now);
  end if;
  if p_counted is not null then
    perform treadle.release_resources(p_counted);
  end if;
  if exists (select from treadle.gates where gates.slowdowns > 0) then
    perform treadle.reset_slowdowns(p_ids);
  end if;
end;
$$;

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
  v_types text[] := treadle.types_with_requirements();
  v_done  record;
begin
  perform treadle.check_array_lengths(p_ids, p_tokens);
  perform treadle.check_outputs(p_ids, p_outputs) where p_outputs is not null;
  perform treadle.check_reports(p_ids, p_reports) where p_reports is not null;
  perform treadle.ensure_durable();
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
      status = 'completed', completed_at = v_now, output = held.output,
      completed_by = coalesce(tasks.agent_id, treadle.agent_of(tasks.id, tasks.last_token)),
      started_at = coalesce(
        tasks.started_at,
        greatest(tasks.claimed_at, v_now - make_interval(secs => held.run_ms / 1000.0))
      ),
      last_token = coalesce(tasks.claim_token, tasks.last_token),
      agent_id = null, claim_token = null, lease_until = null, retry_at = null, slot = null,
      budget_id = null, failure_class = null, failure_reason = null
    from held
    -- By id, not by ctid: a row that changed while its lock was waited for has a new ctid.
    where tasks.id = held.id and not held.bare
    returning
      tasks.ctid, tasks.id, tasks.dag_id, tasks.durable, tasks.has_options, held.report,
      treadle.is_counted(tasks) as counted
  )

  select
    array_agg(done.ctid) as rows, array_agg(done.id) as ids,
    array_agg(done.dag_id) filter (where done.dag_id is not null) as dags,
    array_agg(done.id) filter (where done.durable) as durable,
    array_agg(done.id) filter (where done.counted) as counted,
    array_agg(done.report) as reports, bool_or(done.has_options) as options,
    array(select held.id from held where held.bare) as bare
  into v_done
  from done;

  if v_done.options or p_reports is not null then
    perform treadle.store_results(v_done.ids, v_done.reports, v_now);
  end if;
  perform treadle.audit_tasks(v_done.rows, 'completed', null);
  perform treadle.propagate_completed(
    v_done.ids, v_done.dags, v_done.durable, v_done.counted, v_now
  );
  return query
  select
    ended.id, case when ended.id = any (v_done.bare) then 'report_required' else ended.verdict end
  from treadle.end_verdicts(p_ids, p_tokens, v_done.ids, 'completed') as ended;
end;
$$;

comment on function treadle.complete_tasks(uuid[], uuid[], jsonb[], integer[], jsonb[]) is
'Complete tasks with their outputs; returns completed, already, stale or report_required for each.';

-- complete_task: store the result of one task; an error if the claim was superseded.
--
-- p_report is the decision report, which a type may require.
--
-- In one transaction with the caller's own writes, those happen exactly once: if it returns
-- already, roll back, because an earlier commit has stored them.
--
-- Concurrency: see complete_tasks.
-- Lock order:  tasks.
-- Raises:      TR001 invalid argument, TR101 claim lost, TR107 report required.
create or replace function treadle.complete_task(
  p_id      uuid,
  p_token   uuid,
  p_output  jsonb default null,
  p_report  jsonb default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_verdict text;
begin
  select ended.verdict
  into v_verdict
  from treadle.complete_tasks(
    array[p_id], array[p_token], array[p_output],
    p_reports => case when p_report is not null then array[p_report] end
  ) as ended;
  if v_verdict = 'report_required' then
    perform treadle.raise_error(
      format('task %s cannot be completed without a decision report', p_id),
      jsonb_build_object('task_id', p_id),
      'Pass a report of what was decided and why: p_report => {"summary": ..., "confidence": 0.8}.',
      'TR107'
    );
  end if;
  return treadle.raise_if_lost(p_id, v_verdict);
end;
$$;

comment on function treadle.complete_task(uuid, uuid, jsonb, jsonb) is
'Complete one task; raises an error if the claim was superseded.';

grant execute on function
treadle.complete_tasks(uuid[], uuid[], jsonb[], integer[], jsonb[]) to treadle_worker;
grant execute on function treadle.complete_task(uuid, uuid, jsonb, jsonb) to treadle_worker;
