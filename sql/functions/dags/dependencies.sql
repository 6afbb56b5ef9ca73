-- dependencies: add edges between tasks, and decide what an edge means.

-- edge_verdict: what an edge onto a task in this state means: met, wait, or never.
create or replace function treadle.edge_verdict(p_status text, p_optional boolean, p_policy text)
returns text
language sql
immutable
parallel safe
return case
  when p_status = 'completed' then 'met'
  when p_status = 'cancelled' then case when p_optional then 'met' else 'never' end
  when p_status = 'dead_lettered'
    then case p_policy when 'continue' then 'met' when 'cancel' then 'never' else 'wait' end
  else 'wait'
end;

-- edge_policy: what a dead letter does to the dependent over one edge, by the policy of the DAG.
create or replace function treadle.edge_policy(p_policy text, p_optional boolean)
returns text
language sql
immutable
parallel safe
return case
  when p_policy = 'wait' then 'wait'
  when p_optional then 'continue'
  when p_policy = 'cancel' then 'cancel'
  else 'wait'
end;

-- met_since: now, if a new edge onto this task holds nobody back; null if it does.
--
-- Concurrency: the caller holds the task.
-- Raises:      TR102 illegal transition, when the task can never release its dependent.
create or replace function treadle.met_since(
  p_task      uuid,
  p_optional  boolean,
  p_policy    text,
  p_now       timestamptz
)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_status  text;
  v_verdict text;
begin
  select tasks.status into v_status from treadle.tasks where tasks.id = p_task;
  v_verdict := treadle.edge_verdict(
    v_status, p_optional, treadle.edge_policy(p_policy, p_optional)
  );
  if v_verdict = 'never' then
    perform treadle.refuse(
      format('nothing can depend on task %s: it is %s', p_task, v_status),
      jsonb_build_object('task_id', p_task, 'status', v_status),
      'Retry that task first, or make the dependency optional.',
      'TR102'
    );
  end if;
  return case when v_verdict = 'met' then p_now end;
end;
$$;

-- hold_dependencies: lock tasks that others are about to depend on.
--
-- They are written too, without a change: who ends one of them with an older snapshot then fails
-- and is repeated, instead of missing its new dependent.
--
-- Concurrency: rows are locked in id order.
-- Lock order:  tasks, by id.
create or replace function treadle.hold_dependencies(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  perform treadle.lock_tasks(p_ids);
  update treadle.tasks
  set blocked_count = tasks.blocked_count
  where tasks.id = any (p_ids) and tasks.status not in ('completed', 'cancelled');
end;
$$;

-- raise_paths: tasks got others behind them; they, and what they wait for, become more urgent.
--
-- Upwards from the tasks given, for as long as a chain grows: 30 levels at most, none is longer.
-- A critical path never shrinks. A task that somebody else holds is left as it is, with all above
-- it: it is being claimed or ended, and to wait for it here would be out of order.
--
-- Concurrency: rows locked by others are skipped.
-- Lock order:  tasks (never waits for one).
create or replace function treadle.raise_paths(p_ids uuid[], p_lengths integer[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_ids     uuid[] := p_ids;
  v_lengths integer[] := p_lengths;
begin
  loop
    -- Locked in one statement, read in the next.
    select array_agg(held.id), array_agg(least(wanted.length, 30))
    into v_ids, v_lengths
    from (
      select given.id, max(given.length) as length
      from unnest(v_ids, v_lengths) as given (id, length)
      group by given.id
    ) as wanted
    cross join lateral (
      select tasks.id
      from treadle.tasks
      where
        tasks.id = wanted.id
        and tasks.completed_at is null
        and tasks.critical_path < least(wanted.length, 30)
      for no key update skip locked
    ) as held;
    exit when v_ids is null;

    with raised as (
      update treadle.tasks
      set
        critical_path = wanted.length,
        rank = tasks.rank - (wanted.length - tasks.critical_path) * 1000000::bigint
      from unnest(v_ids, v_lengths) as wanted (id, length)
      where tasks.id = wanted.id and tasks.critical_path < wanted.length
      returning tasks.id, tasks.critical_path
    )

    select array_agg(dependencies.depends_on), array_agg(raised.critical_path + 1)
    into v_ids, v_lengths
    from raised
    inner join treadle.dependencies on raised.id = dependencies.task_id
    where dependencies.met_at is null;
    exit when v_ids is null;
  end loop;
end;
$$;

-- check_circle: refuse edges from a task onto others that wait for it already.
--
-- Concurrency: the caller holds the row `edges` of locks, so that no other edge comes in between.
-- Raises:      TR103 cycle.
create or replace function treadle.check_circle(p_task uuid, p_on uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_closing uuid;
begin
  with recursive upstream as (
    select given.id, given.id as first from unnest(p_on) as given (id)
    union
    select dependencies.depends_on, upstream.first
    from upstream
    inner join treadle.dependencies on upstream.id = dependencies.task_id
    where dependencies.met_at is null and upstream.id <> p_task
  )

  select upstream.first into v_closing from upstream where upstream.id = p_task limit 1;
  if found then
    perform treadle.refuse(
      format(
        'task %s cannot depend on %s, which waits for it', p_task,
        case when v_closing = p_task then 'itself' else v_closing::text end
      ),
      jsonb_build_object('task_id', p_task, 'depends_on', v_closing),
      'Take a dependency away first, or leave this one out.',
      'TR103'
    );
  end if;
end;
$$;

-- link_task: make a task depend on others that exist; returns how many of them hold it back.
--
-- An edge onto a task that waits for nothing cannot close a circle: to make it wait somebody would
-- have to lock it first. All others are checked one after the other, each seeing those before.
--
-- Concurrency: the caller holds the task and what it is to depend on, as one ordered set.
-- Lock order:  locks (after tasks).
-- Raises:      TR102 illegal transition, TR103 cycle.
create or replace function treadle.link_task(
  p_task      uuid,
  p_on        uuid[],
  p_optional  boolean,
  p_policy    text,
  p_now       timestamptz
)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_left integer;
begin
  if p_task = any (p_on) or exists (
    select from treadle.tasks where tasks.id = any (p_on) and tasks.blocked_count > 0
  ) then
    insert into treadle.locks (name) values ('edges')
    on conflict (name) do update set touched = locks.touched + 1;
    perform treadle.check_circle(p_task, p_on);
  end if;

  with added as (
    insert into treadle.dependencies (task_id, depends_on, optional, on_dead_letter, met_at)
    select
      p_task, wanted.id, p_optional, treadle.edge_policy(p_policy, p_optional),
      treadle.met_since(wanted.id, p_optional, p_policy, p_now)
    from (select distinct given.id from unnest(p_on) as given (id)) as wanted
    on conflict (depends_on, task_id) do nothing
    returning dependencies.met_at
  )

  select count(*) into v_left from added where added.met_at is null;
  perform treadle.raise_paths(
    p_on, array_fill(tasks.critical_path + 1, array[cardinality(p_on)])
  )
  from treadle.tasks
  where tasks.id = p_task and v_left > 0;
  return v_left;
end;
$$;
