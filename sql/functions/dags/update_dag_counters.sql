-- update_dag_counters: update the counters of DAGs for tasks that ended or were retried; the last
-- task ends its DAG.
--
-- The arguments give a DAG, the old state and the new state for each task; states that are not
-- final are null. A DAG ends as completed if one of its leaves completed, otherwise as cancelled.
--
-- Concurrency: the DAGs are locked in id order, so that of two last tasks the second sees the
-- first.
-- Lock order:  dags (after tasks), then the history.

-- dag_result: return how a DAG ends whose tasks have all ended.
--
-- It is completed if a task completed that no other task of the DAG depends on. Subtasks do not
-- count, because they are part of the task that spawned them.
--
-- Concurrency: reads only; the caller has locked the DAG, and all its tasks have ended.
create or replace function treadle.dag_result(p_dag uuid)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  select
    case
      when exists (
        select from treadle.tasks
        where
          tasks.dag_id = p_dag
          and tasks.status = 'completed'
          and tasks.parent_id is null
          and not exists (
            select from treadle.dependencies
            inner join treadle.tasks as dependent on dependencies.task_id = dependent.id
            where
              dependencies.depends_on = tasks.id
              -- Written so that no index on this condition is used, which would read the whole DAG.
              and (dependent.dag_id = p_dag) is true
              and dependent.parent_id is null
          )
      )
        then 'completed'
      else 'cancelled'
    end
$$;

-- dag_event_kinds: return the kinds of events for a change of a DAG's counters.
--
-- Events mark its end, a dead letter, a reopening, and each tenth of the progress.
create or replace function treadle.dag_event_kinds(
  p_old_status               text,
  p_status            text,
  p_tasks             integer,
  p_completed_before  integer,
  p_completed         integer,
  p_dead_before       integer,
  p_dead              integer
)
returns setof text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select news.kind
  from (
    values
    ('failed', p_dead > p_dead_before),
    ('reopened', p_old_status in ('completed', 'cancelled') and p_status in ('running', 'failed')),
    (
      'progressed',
      p_completed < p_tasks
      and p_completed_before::bigint * 10 / p_tasks < p_completed::bigint * 10 / p_tasks
    ),
    ('completed', p_status = 'completed' and p_old_status <> 'completed'),
    ('cancelled', p_status = 'cancelled' and p_old_status <> 'cancelled')
  ) as news (kind, holds)
  where news.holds
$$;

create or replace function treadle.update_dag_counters(
  p_dags  uuid[],
  p_old_status   text[],
  p_new_status    text[],
  p_now   timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_before treadle.dags[] := array(
    select dags
    from treadle.dags
    where dags.id = any (p_dags)
    order by dags.id
    for no key update
  );
begin
  with changes as (
    select
      given.id,
      count(*) filter (where given.became = 'completed') as completed,
      count(*) filter (where given.became = 'cancelled')
      - count(*) filter (where given.was = 'cancelled') as cancelled,
      count(*) filter (where given.became = 'dead_lettered')
      - count(*) filter (where given.was = 'dead_lettered') as dead_lettered
    from unnest(p_dags, p_old_status, p_new_status) as given (id, was, became)
    where given.id is not null
    group by given.id
  ),

  counted as (
    select
      before.*,
      before.completed + changes.completed as now_completed,
      before.cancelled + changes.cancelled as now_cancelled,
      before.dead_lettered + changes.dead_lettered as now_dead
    from unnest(v_before) as before
    inner join changes on before.id = changes.id
  ),

  judged as (
    select
      counted.*,
      case
        when counted.status = 'open' then 'open'
        when counted.now_completed + counted.now_cancelled = counted.tasks
          then treadle.dag_result(counted.id)
        when counted.now_dead > 0 then 'failed'
        else 'running'
      end as now_status
    from counted
  ),

  moved as (
    update treadle.dags
    set
      completed = judged.now_completed,
      cancelled = judged.now_cancelled,
      dead_lettered = judged.now_dead,
      status = judged.now_status,
      ended_at = case when judged.now_status in ('completed', 'cancelled') then p_now end
    from judged
    where dags.id = judged.id
    returning
      dags.*, judged.status as was, judged.completed as completed_before,
      judged.dead_lettered as dead_before
  )

  insert into treadle.events (at, kind, dag_id, data)
  select p_now, 'dag.' || news.kind, moved.id, jsonb_build_object(
    'name', moved.name, 'tasks', moved.tasks, 'completed', moved.completed,
    'cancelled', moved.cancelled, 'dead_lettered', moved.dead_lettered
  )
  from moved
  cross join lateral treadle.dag_event_kinds(
    moved.was, moved.status, moved.tasks, moved.completed_before, moved.completed,
    moved.dead_before, moved.dead_lettered
  ) as news (kind);
end;
$$;
