-- reap_claims: take back tasks whose claim has run out, as failed attempts.
--
-- claim_expired: not started in time. heartbeat_timeout: no sign of life. timeout: ran too long.
-- work_stale: a queue whose on_lease_expiry is block: the task is blocked, not failed.
-- A row that cannot be moved does not stop the others: it is reported in problem, and left out when
-- its id is passed in p_skip.
--
-- Concurrency: rows locked by others are skipped; the test is repeated on the locked row. Locks of
--              dependents are waited for only briefly, since they may come out of order.
-- Lock order:  tasks, then the history.

-- stale_reason: why a claim has run out, or null while it holds.
create or replace function treadle.stale_reason(p_task treadle.tasks, p_now timestamptz)
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

comment on function treadle.stale_reason(treadle.tasks, timestamptz) is
'Internal: claim_expired, heartbeat_timeout, timeout, or null.';

-- stale_claims: lock claims that have run out, and say why, or that their queue blocks them.
--
-- The ids come first, from the index of live claims; an `order by` with a limit there could make
-- the planner walk the whole table in id order instead.
--
-- Concurrency: rows locked by others are skipped; the test is repeated on the locked row.
-- Lock order:  tasks.
create or replace function treadle.stale_claims(
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
      and treadle.stale_reason(tasks, p_now) is not null
      and tasks.id <> all (p_skip)
  );
begin
  return query
  select
    tasks.ctid,
    tasks.id,
    case queues.on_lease_expiry
      when 'block' then 'work_stale'
      else treadle.stale_reason(tasks, p_now)
    end
  from (
    select given.id from unnest(v_ids) as given (id) order by given.id limit p_limit
  ) as stale
  inner join treadle.tasks on stale.id = tasks.id
  inner join treadle.queues on tasks.queue = queues.name
  where treadle.stale_reason(tasks, p_now) is not null
  for update of tasks skip locked;
end;
$$;

-- stall_work: block work items that their agents have said nothing about for too long.
--
-- Concurrency: the caller holds the rows.
-- Lock order:  tasks, then the history.
create or replace function treadle.stall_work(p_rows tid[], p_now timestamptz)
returns table (id uuid, status text)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_task treadle.tasks;
  v_note text;
  v_over integer;
begin
  for v_task in
    select tasks.* from treadle.tasks where tasks.ctid = any (p_rows) order by tasks.id
  loop
    v_note := format(
      'timed out: no update by %s since %s', v_task.agent_id,
      treadle.utc_words(v_task.heartbeat_at)
    );
    -- So many letters are at least so many bytes; four are for the sign in their place and a line.
    v_over := octet_length(v_task.notes) + octet_length(v_note) + 4 - 20000;
    perform treadle.put_aside(v_task, 'blocked', 0, null, p_now);
    update treadle.tasks
    -- As many bytes as update_work takes; the oldest give way, and are in the log.
    set notes = concat_ws(
      e'\n',
      case
        when v_over > 0 then '…' || substr(v_task.notes, v_over + 1)
        else nullif(v_task.notes, '')
      end,
      v_note
    )
    where tasks.id = v_task.id;
    perform treadle.log_work(
      v_task.id, 'reaper', 'in_progress', 'blocked', v_task.agent_id, v_note, p_kind => 'stale',
      p_at => p_now
    );
    id := v_task.id;
    status := 'blocked';
    return next;
  end loop;
end;
$$;

-- reap_rows: end the attempts of some stale claims; work items are blocked instead.
--
-- Concurrency: the caller holds the rows.
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
        when 'heartbeat_timeout' then 'no heartbeat: the worker is gone or stuck'
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
  select moved.id, moved.status from treadle.stall_work(v_stale.work, treadle.clock()) as moved;
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
-- Well below deadlock_timeout: who holds what it wants is not made to give way.
set lock_timeout = '200ms'
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := treadle.clock();
  v_stale record;
begin
  perform treadle.keep_durable();
  for v_stale in
    select
      array_agg(stale.ctid) as rows,
      array_agg(stale.id) as ids,
      array_agg(stale.reason) as reasons
    from treadle.stale_claims(v_now, p_limit, p_skip) as stale
    having count(*) > 0
  loop
    begin
      return query
      select moved.id, v_stale.reasons[array_position(v_stale.ids, moved.id)], moved.status, null
      from treadle.reap_rows(v_stale.rows, v_stale.reasons) as moved;
    exception when others then
      -- One of them is bad: each on its own, so that the rest go through.
      for v_at in 1..cardinality(v_stale.rows) loop
        begin
          return query
          select moved.id, v_stale.reasons[v_at], moved.status, null
          from treadle.reap_rows(v_stale.rows[v_at:v_at], v_stale.reasons[v_at:v_at]) as moved;
        exception
          when lock_not_available then
            -- The next pass takes it; the rest of this one is not held up as long.
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
'Fail claims that ran out; says of each why and what becomes of its task.';

grant execute on function treadle.stale_reason(treadle.tasks, timestamptz) to
treadle_observer, treadle_operator;
grant execute on function treadle.reap_claims(integer, uuid[]) to treadle_worker;
