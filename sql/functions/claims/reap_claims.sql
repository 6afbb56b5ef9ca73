-- reap_claims: end expired claims as failed attempts.
--
-- claim_expired: not started in time. heartbeat_timeout: no heartbeat. timeout: ran too long.
-- work_stale: the queue has on_lease_expiry block, so the task is blocked and not failed. A row
-- that cannot be moved does not stop the others. It is reported in problem; pass its id in p_skip
-- to leave it out.
--
-- Concurrency: skips locked rows; the condition is checked again on the locked row. Locks of
-- dependents are waited for only briefly, since they may be out of order.
-- Lock order:  tasks, then the history.

-- claim_expiry_reason: return why a claim has expired; null while it is valid.
create or replace function treadle.claim_expiry_reason(p_task treadle.tasks, p_now timestamptz)
returns text
language sql
stable
return case
  when p_task.lease_until < p_now and p_task.started_at is null then 'claim_expired'
  when p_task.lease_until < p_now then 'heartbeat_timeout'
  when
    p_task.claim_token is not null
    and p_task.started_at + pg_catalog.make_interval(secs => p_task.timeout_s) < p_now
    then 'timeout'
end;

comment on function treadle.claim_expiry_reason(treadle.tasks, timestamptz) is
'Why a claim has expired: claim_expired, heartbeat_timeout, timeout, or null while it is valid.';

-- lock_expired_claims: lock expired claims, with the reason or that their queue blocks them.
--
-- The ids are read first, from the index of live claims; an `order by` with a limit there could
-- make the planner scan the whole table in id order.
--
-- Concurrency: skips locked rows; the condition is checked again on the locked row.
-- Lock order:  tasks.
create or replace function treadle.lock_expired_claims(
  p_now    timestamptz,
  p_limit  integer,
  p_skip   uuid[]
)
returns table (ctid tid, id uuid, reason text)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_ids uuid[] := array(
    select tasks.id
    from treadle.tasks
    where
      tasks.status in ('claimed', 'running', 'validating')
      and treadle.claim_expiry_reason(tasks, p_now) is not null
      and tasks.id <> all (p_skip)
  );
begin
  return query
  select
    tasks.ctid,
    tasks.id,
    case queues.on_lease_expiry
      when 'block' then 'work_stale'
      else treadle.claim_expiry_reason(tasks, p_now)
    end
  from (
    select given.id from unnest(v_ids) as given (id) order by given.id limit p_limit
  ) as stale
  inner join treadle.tasks on stale.id = tasks.id
  inner join treadle.queues on tasks.queue = queues.name
  where treadle.claim_expiry_reason(tasks, p_now) is not null
  for update of tasks skip locked;
end;
$$;

-- block_expired_claims: block work items whose agents have sent no update for too long.
--
-- Concurrency: the caller has locked the rows.
-- Lock order:  tasks, then the history.
create or replace function treadle.block_expired_claims(p_rows tid[], p_now timestamptz)
returns table (id uuid, status text)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_task treadle.tasks;
  v_was  text;
  v_note text;
  v_over integer;
begin
  for v_task in
    select tasks.* from treadle.tasks where tasks.ctid = any (p_rows) order by tasks.id
  loop
    v_note := format(
      'timed out: no update by %s since %s', v_task.agent_id,
      treadle.format_utc(v_task.heartbeat_at)
    );
    v_was := (treadle.options_of(v_task)).notes;
    -- Limited to the length that update_work_item accepts; the oldest text is cut, and is in the
    -- log.
    v_over := char_length(v_was) + char_length(v_note) + 2 - 20000;
    perform treadle.suspend_claim(v_task, 'blocked', 0, null, p_now);
    perform treadle.write_notes(
      v_task.id,
      concat_ws(
        e'\n',
        case when v_over > 0 then '…' || substr(v_was, v_over + 1) else nullif(v_was, '') end,
        v_note
      )
    );
    perform treadle.log_work(
      v_task.id, 'reaper', 'in_progress', 'blocked', v_task.agent_id, v_note, p_kind => 'stalled',
      p_at => p_now
    );
    id := v_task.id;
    status := 'blocked';
    return next;
  end loop;
end;
$$;

-- reap_rows: end the attempts of some expired claims; work items are blocked instead.
--
-- Concurrency: the caller has locked the rows.
-- Lock order:  tasks, then the history.
create or replace function treadle.reap_rows(p_rows tid[], p_reasons text[])
returns table (id uuid, status text)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_stale record;
begin
  select
    coalesce(array_agg(given.place) filter (where given.reason = 'work_stale'), '{}') as work,
    array_agg(given.place) filter (where given.reason is distinct from 'work_stale') as rows,
    array_agg(given.reason) filter (where given.reason is distinct from 'work_stale') as reasons,
    array_agg(case given.reason when 'timeout' then 'timeout' else 'crash' end)
      filter (where given.reason is distinct from 'work_stale') as classes,
    array_agg(
      case given.reason
        when 'claim_expired' then 'claimed but not started in time'
        when 'heartbeat_timeout' then 'no heartbeat: the worker has stopped or hangs'
        else 'ran longer than its timeout'
      end
    ) filter (where given.reason is distinct from 'work_stale') as errors
  into v_stale
  from unnest(p_rows, p_reasons) as given (place, reason);

  if v_stale.rows is not null then
    return query
    select moved.id, moved.status
    from treadle.end_attempts(
      v_stale.rows, v_stale.classes, v_stale.reasons, v_stale.errors, null, null
    ) as moved;
  end if;
  return query
  select moved.id, moved.status from treadle.block_expired_claims(
    v_stale.work, treadle.clock()
  ) as moved;
end;
$$;

create or replace function treadle.reap_claims(
  p_limit  integer default 100,
  p_skip   uuid[] default '{}'
)
returns table (id uuid, reason text, status text, problem text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
-- Well below deadlock_timeout, so that the other session is not the one that is cancelled.
set lock_timeout = '200ms'
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := treadle.clock();
  v_stale record;
begin
  perform treadle.ensure_durable();
  for v_stale in
    select
      array_agg(stale.ctid) as rows,
      array_agg(stale.id) as ids,
      array_agg(stale.reason) as reasons
    from treadle.lock_expired_claims(v_now, p_limit, p_skip) as stale
    having count(*) > 0
  loop
    begin
      return query
      select moved.id, v_stale.reasons[array_position(v_stale.ids, moved.id)], moved.status, null
      from treadle.reap_rows(v_stale.rows, v_stale.reasons) as moved;
    exception when others then
      -- One of them failed: try each one separately, so that the others succeed.
      for v_at in 1..cardinality(v_stale.rows) loop
        begin
          return query
          select moved.id, v_stale.reasons[v_at], moved.status, null
          from treadle.reap_rows(v_stale.rows[v_at:v_at], v_stale.reasons[v_at:v_at]) as moved;
        exception
          when lock_not_available then
            -- The next call takes it, so that the rest of this one is not delayed.
            perform set_config('lock_timeout', '10ms', true);
          when others then
            return query select v_stale.ids[v_at], v_stale.reasons[v_at], null, sqlerrm;
        end;
      end loop;
    end;
  end loop;
end;
$$;

comment on function treadle.reap_claims(integer, uuid[]) is
'End expired claims; returns for each the reason and what becomes of its task.';

grant execute on function treadle.claim_expiry_reason(treadle.tasks, timestamptz) to
treadle_observer, treadle_operator;
grant execute on function treadle.reap_claims(integer, uuid[]) to treadle_worker;
