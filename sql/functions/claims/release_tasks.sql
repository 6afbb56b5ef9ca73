-- release_tasks: release claimed tasks without counting an attempt.
--
-- Concurrency: rows are locked in id order; a row whose claim was superseded is skipped.
-- Lock order:  tasks.
-- Raises:      TR001 invalid argument.

create or replace function treadle.release_tasks(p_ids uuid[], p_tokens uuid[])
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
  v_rows   tid[];
  v_done   uuid[];
  v_queues text[];
  v_budgeted uuid[];
begin
  perform treadle.check_array_lengths(p_ids, p_tokens);
  perform treadle.ensure_durable();

  with held as materialized (
    select tasks.id
    from unnest(p_ids, p_tokens) as claim (id, token)
    inner join treadle.tasks on claim.id = tasks.id and claim.token = tasks.claim_token
    order by tasks.id
    for no key update of tasks
  ),

  freed as (
    update treadle.tasks
    set
      status = 'ready',
      attempt = tasks.attempt - 1,
      last_token = tasks.claim_token,
      agent_id = null,
      claim_token = null,
      lease_until = null,
      claimed_at = null,
      started_at = null,
      heartbeat_at = null
    -- By id, not by ctid: a row that changed while its lock was waited for has a new ctid.
    where tasks.id = any (array(select held.id from held))
    returning tasks.ctid, tasks.id, tasks.queue, tasks.budgeted
  )

  select
    array_agg(freed.ctid),
    array_agg(freed.id),
    array_agg(distinct freed.queue),
    array_agg(freed.id) filter (where freed.budgeted)
  into v_rows, v_done, v_queues, v_budgeted
  from freed;

  perform treadle.release_resources(v_budgeted);
  perform treadle.notify_workers(v_queues);
  perform treadle.audit_tasks(v_rows, 'released', null);
  return query
  select verdicts.* from treadle.end_verdicts(p_ids, p_tokens, v_done, 'released') as verdicts;
end;
$$;

comment on function treadle.release_tasks(uuid[], uuid[]) is
'Release unfinished tasks; returns for each: released, already or stale.';

grant execute on function treadle.release_tasks(uuid[], uuid[]) to treadle_worker;
