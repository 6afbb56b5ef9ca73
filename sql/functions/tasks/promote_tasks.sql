-- promote_tasks: make ready what has fallen due: retries, and tasks with a time to run.
--
-- First of all, delays that were made under a wrong clock are put right: see recount_delays.
--
-- A row that cannot be moved does not stop the others: it is reported in problem, and left out when
-- its id is passed in p_skip.
--
-- Concurrency: rows locked by others are skipped.
-- Lock order:  tasks.

-- recount_rows: let the delays of some waiting tasks count from now.
--
-- Concurrency: the caller holds the rows.
-- Lock order:  tasks.
create or replace function treadle.recount_rows(p_rows tid[], p_now timestamptz)
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

-- recount_delays: let delays that were made under a clock that ran ahead count from now.
--
-- A delay that counts from a moment in the future was made while the clock of the database was
-- wrong, or the clock was set back since. The task would wait for the whole jump; so it waits for
-- its delay from now on, whatever made that delay: a policy, a rate limit, a handler, a caller. A
-- moment that a caller named is a wish and stays. Repeating it changes nothing.
--
-- Concurrency: rows locked by others are skipped. A row that cannot be changed is reported and does
--              not stop the others.
-- Lock order:  tasks.
create or replace function treadle.recount_delays(
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
    perform treadle.recount_rows(v_rows, p_now);
  exception when others then
    -- One of them is bad: each on its own, so that the rest go through.
    for v_at in 1..cardinality(v_rows) loop
      begin
        perform treadle.recount_rows(v_rows[v_at:v_at], p_now);
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
  from treadle.recount_delays(p_limit, p_skip, v_now) as failed;

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
  perform treadle.keep_durable();
  begin
    return query select moved.id, null from treadle.ready_rows(v_rows) as moved (id);
  exception when others then
    -- One of them is bad: each on its own, so that the rest go through.
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
