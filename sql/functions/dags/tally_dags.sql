-- tally_dags: count tasks that ended, or came back, in their DAGs; the last one ends its DAG.
--
-- Given one DAG, the state before and the state now for each task; states that are no end are
-- null. A DAG that ends is completed when something came out at a leaf, else cancelled.
--
-- Concurrency: the DAGs are locked in id order: of two last tasks the second sees the first.
-- Lock order:  dags (after tasks), then the history.

-- dag_result: how a DAG whose tasks have all ended has ended itself.
--
-- Completed when a task was completed that none of the DAG depends on: something came out at the
-- end. Subtasks do not count, they are part of the task that spawned them.
--
-- Concurrency: reads; the caller holds the DAG, and nothing in it moves any more.
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
              -- Not as a condition that an index could serve: that would read the whole DAG.
              and (dependent.dag_id = p_dag) is true
              and dependent.parent_id is null
          )
      )
        then 'completed'
      else 'cancelled'
    end
$$;

-- dag_news: which events a change of a DAG's counters is worth.
--
-- Its end, a task that gave up, coming back to life, and each tenth of the way.
create or replace function treadle.dag_news(
  p_was               text,
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
    ('reopened', p_was in ('completed', 'cancelled') and p_status in ('running', 'failed')),
    (
      'progress',
      p_completed < p_tasks
      and p_completed_before::bigint * 10 / p_tasks < p_completed::bigint * 10 / p_tasks
    ),
    ('completed', p_status = 'completed' and p_was <> 'completed'),
    ('cancelled', p_status = 'cancelled' and p_was <> 'cancelled')
  ) as news (kind, holds)
  where news.holds
$$;

create or replace function treadle.tally_dags(
  p_dags  uuid[],
  p_was   text[],
  p_is    text[],
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
    from unnest(p_dags, p_was, p_is) as given (id, was, became)
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
  cross join lateral treadle.dag_news(
    moved.was, moved.status, moved.tasks, moved.completed_before, moved.completed,
    moved.dead_before, moved.dead_lettered
  ) as news (kind);
end;
$$;
