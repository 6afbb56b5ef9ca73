-- dependencies: add edges between tasks, and decide whether an edge is met.

-- edge_verdict: decide about an edge to a task in a given state: met, wait, or never.
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

-- edge_policy: return what a dead letter does to the dependent of one edge, by the policy of the
-- DAG.
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

-- dependency_met_at: return the current time if a new edge to this task is already met; null
-- otherwise.
--
-- Concurrency: the caller has locked the task.
-- Raises:      TR102 illegal transition, if the task can never release its dependent.
create or replace function treadle.dependency_met_at(
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
    perform treadle.raise_error(
      format('nothing can depend on task %s: it is %s', p_task, v_status),
      jsonb_build_object('task_id', p_task, 'status', v_status),
      'Retry that task first, or make the dependency optional.',
      'TR102'
    );
  end if;
  return case when v_verdict = 'met' then p_now end;
end;
$$;

-- lock_dependencies: lock tasks that others are about to depend on.
--
-- The rows are also updated without a change: a session that ends one of them with an older
-- snapshot then fails and is repeated, instead of missing the new dependent.
--
-- Concurrency: rows are locked in id order.
-- Lock order:  tasks, by id.
create or replace function treadle.lock_dependencies(p_ids uuid[])
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

-- extend_critical_paths: raise the critical path of tasks that got new dependents, and of their
-- dependencies.
--
-- It goes upwards from the given tasks as long as a chain grows, at most 30 levels. A critical path
-- never shrinks. A locked task is skipped with everything above it: it is being claimed or ended,
-- and waiting for it here would violate the lock order.
--
-- Concurrency: skips locked rows.
-- Lock order:  tasks (skips locked rows).
create or replace function treadle.extend_critical_paths(p_ids uuid[], p_lengths integer[])
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

-- check_cycle: reject edges from a task to tasks that already wait for it.
--
-- Concurrency: the caller has locked the row `edges` of locks, so that no other edge is added in
-- between.
-- Raises:      TR103 cycle.
create or replace function treadle.check_cycle(p_task uuid, p_depends_on uuid[])
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
    select given.id, given.id as first from unnest(p_depends_on) as given (id)
    union
    select dependencies.depends_on, upstream.first
    from upstream
    inner join treadle.dependencies on upstream.id = dependencies.task_id
    where dependencies.met_at is null and upstream.id <> p_task
  )

  select upstream.first into v_closing from upstream where upstream.id = p_task limit 1;
  if found then
    perform treadle.raise_error(
      format(
        'task %s cannot depend on %s, which waits for it', p_task,
        case when v_closing = p_task then 'itself' else v_closing::text end
      ),
      jsonb_build_object('task_id', p_task, 'depends_on', v_closing),
      'Remove another dependency first, or omit this one.',
      'TR103'
    );
  end if;
end;
$$;

-- add_edges: make a task depend on existing tasks; returns how many of them it waits for.
--
-- An edge to a task that waits for nothing cannot close a cycle, because that task would have to be
-- locked first to make it wait. All other edges are checked one by one, each seeing the earlier
-- ones.
--
-- Concurrency: the caller has locked the task and its new dependencies as one ordered set.
-- Lock order:  locks (after tasks).
-- Raises:      TR102 illegal transition, TR103 cycle.
create or replace function treadle.add_edges(
  p_task      uuid,
  p_depends_on        uuid[],
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
  if p_task = any (p_depends_on) or exists (
    select from treadle.tasks where tasks.id = any (p_depends_on) and tasks.blocked_count > 0
  ) then
    insert into treadle.locks (name) values ('edges')
    on conflict (name) do update set touched = locks.touched + 1;
    perform treadle.check_cycle(p_task, p_depends_on);
  end if;

  with added as (
    insert into treadle.dependencies (task_id, depends_on, optional, on_dead_letter, met_at)
    select
      p_task, wanted.id, p_optional, treadle.edge_policy(p_policy, p_optional),
      treadle.dependency_met_at(wanted.id, p_optional, p_policy, p_now)
    from (select distinct given.id from unnest(p_depends_on) as given (id)) as wanted
    on conflict (depends_on, task_id) do nothing
    returning dependencies.met_at
  )

  select count(*) into v_left from added where added.met_at is null;
  perform treadle.extend_critical_paths(
    p_depends_on, array_fill(tasks.critical_path + 1, array[cardinality(p_depends_on)])
  )
  from treadle.tasks
  where tasks.id = p_task and v_left > 0;
  return v_left;
end;
$$;
