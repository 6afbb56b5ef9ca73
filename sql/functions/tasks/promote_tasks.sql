-- promote_tasks: make due retries and due tasks claimable.
--
-- First it corrects delays that were stored with a wrong clock; see restart_delays.
--
-- A row that cannot be moved does not stop the others. It is reported in problem; pass its id in
-- p_skip to leave it out.
--
-- Concurrency: skips locked rows.
-- Lock order:  tasks.

-- restart_delay_rows: restart the delays of some waiting tasks from now.
--
-- Concurrency: the caller has locked the rows.
-- Lock order:  tasks.
create or replace function treadle.restart_delay_rows(p_rows tid[], p_now timestamptz)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  update treadle.tasks
  set
    retry_at = tasks.retry_at - (tasks.delayed_at - p_now),
    run_at = case
      when tasks.status = 'pending' then tasks.run_at - (tasks.delayed_at - p_now)
      else tasks.run_at
    end,
    delayed_at = p_now
  where tasks.ctid = any (p_rows)
$$;

-- restart_delays: restart delays from now that were stored with a clock that ran ahead.
--
-- A delay that starts in the future was stored while the clock of the database was wrong, or the
-- clock was set back since. The task would wait for the whole jump, so its delay restarts now,
-- whether it came from a policy, a rate limit, a handler or a caller. A time that a caller named
-- stays. A repeated call changes nothing.
--
-- Concurrency: skips locked rows. A row that cannot be changed is reported and does not stop the
-- others.
-- Lock order:  tasks.
create or replace function treadle.restart_delays(
  p_limit  integer,
  p_skip   uuid[],
  p_now    timestamptz
)
returns table (id uuid, problem text)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
#variable_conflict use_column
declare
  v_rows tid[] := array(
    select tasks.ctid
    from treadle.tasks
    where
      tasks.status in ('pending', 'retrying') and tasks.delayed_at is not null
      and tasks.delayed_at > p_now and tasks.id <> all (p_skip)
    order by tasks.delayed_at
    limit p_limit
    for update skip locked
  );
begin
  if v_rows = '{}' then
    return;
  end if;
  begin
    perform treadle.restart_delay_rows(v_rows, p_now);
  exception when others then
    -- One of them failed: try each one separately, so that the others succeed.
    for v_at in 1..cardinality(v_rows) loop
      begin
        perform treadle.restart_delay_rows(v_rows[v_at:v_at], p_now);
      exception when others then
        return query
        select tasks.id, sqlerrm from treadle.tasks where tasks.ctid = v_rows[v_at];
      end;
    end loop;
  end;
end;
$$;

create or replace function treadle.promote_tasks(
  p_limit  integer default 1000,
  p_skip   uuid[] default '{}'
)
returns table (id uuid, problem text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := treadle.clock();
  v_rows tid[];
begin
  return query
  select failed.id, failed.problem
  from treadle.restart_delays(p_limit, p_skip, v_now) as failed;

  v_rows := array(
    select tasks.ctid
    from treadle.tasks
    where
      tasks.status = 'retrying' and tasks.retry_at <= v_now and tasks.id <> all (p_skip)
    order by tasks.retry_at
    limit p_limit
    for update skip locked
  ) || array(
    select tasks.ctid
    from treadle.tasks
    where
      tasks.status = 'pending' and tasks.blocked_count = 0 and tasks.run_at <= v_now
      and tasks.slot is null and tasks.budget_id is null and tasks.id <> all (p_skip)
    order by tasks.run_at
    limit p_limit
    for update skip locked
  );
  if v_rows = '{}' then
    return;
  end if;
  perform treadle.ensure_durable();
  begin
    return query select moved.id, null from treadle.ready_rows(v_rows) as moved (id);
  exception when others then
    -- One of them failed: try each one separately, so that the others succeed.
    for v_at in 1..cardinality(v_rows) loop
      begin
        return query
        select moved.id, null from treadle.ready_rows(v_rows[v_at:v_at]) as moved (id);
      exception when others then
        return query
        select tasks.id, sqlerrm from treadle.tasks where tasks.ctid = v_rows[v_at];
      end;
    end loop;
  end;
end;
$$;

comment on function treadle.promote_tasks(integer, uuid[]) is
'Make due retries and due tasks claimable; returns their ids.';

grant execute on function treadle.promote_tasks(integer, uuid[]) to treadle_worker;
