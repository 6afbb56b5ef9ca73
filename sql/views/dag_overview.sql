-- dag_overview: the progress and cost of each DAG, with its roots and leaves.
--
-- Roots and leaves follow from edges inside the DAG; subtasks belong to the task that spawned them.

create view treadle.dag_overview as
select
  dags.id,
  dags.name,
  dags.status,
  dags.on_dead_letter,
  dags.tasks,
  dags.completed,
  dags.cancelled,
  dags.dead_lettered,
  coalesce(live.running, 0) as running,
  coalesce(live.ready, 0) as ready,
  coalesce(live.pending, 0) as pending,
  coalesce(live.blocked, 0) as blocked,
  live.roots,
  live.leaves,
  money.limit_usd as budget_usd,
  coalesce(live.cost_usd, 0) as cost_usd,
  dags.project_id,
  dags.created_by,
  dags.created_at,
  dags.started_at,
  dags.ended_at,
  round(
    extract(epoch from coalesce(dags.ended_at, (select treadle.view_clock())) - dags.started_at), 3
  ) as duration_s,
  coalesce(live.open_waits, 0)::integer as open_waits,
  dags.meta
from treadle.dags
left join treadle.budgets as money
  on money.scope = 'dag' and money.scope_key = dags.id::text and money.period is null
left join lateral (
  select
    count(*) filter (where tasks.status in ('claimed', 'running', 'validating')) as running,
    count(*) filter (where tasks.status = 'ready') as ready,
    count(*) filter (where tasks.status in ('created', 'pending', 'retrying')) as pending,
    count(*) filter (where tasks.status = 'blocked') as blocked,
    array_agg(tasks.id order by tasks.id) filter (
      where tasks.parent_id is null and not exists (
        select from treadle.dependencies
        inner join treadle.tasks as other on dependencies.depends_on = other.id
        where
          dependencies.task_id = tasks.id
          and (other.dag_id = tasks.dag_id) is true
          and other.parent_id is distinct from tasks.id
      )
    ) as roots,
    array_agg(tasks.id order by tasks.id) filter (
      where tasks.parent_id is null and not exists (
        select from treadle.dependencies
        inner join treadle.tasks as other on dependencies.task_id = other.id
        where
          dependencies.depends_on = tasks.id
          and (other.dag_id = tasks.dag_id) is true
          and other.parent_id is null
      )
    ) as leaves,
    sum(tasks.cost_usd) as cost_usd,
    sum(
      (
        select count(*) from treadle.waits
        where waits.task_id = tasks.id and waits.status = 'open'
      )
    ) as open_waits
  from treadle.tasks
  where tasks.dag_id = dags.id
) as live on true;

comment on view treadle.dag_overview is
'One row per DAG: state, counts, roots and leaves, cost. Filter by id.';
comment on column treadle.dag_overview.id is 'Id of the DAG.';
comment on column treadle.dag_overview.name is 'Name of the DAG.';
comment on column treadle.dag_overview.status is 'open, running, failed, completed or cancelled.';
comment on column treadle.dag_overview.on_dead_letter is
'What a dead letter does to its dependents: wait, cancel or continue.';
comment on column treadle.dag_overview.tasks is 'Number of tasks.';
comment on column treadle.dag_overview.completed is 'Tasks completed.';
comment on column treadle.dag_overview.cancelled is 'Tasks cancelled.';
comment on column treadle.dag_overview.dead_lettered is 'Tasks in dead letter.';
comment on column treadle.dag_overview.running is 'Tasks claimed or running.';
comment on column treadle.dag_overview.ready is 'Tasks that can be claimed.';
comment on column treadle.dag_overview.pending is 'Tasks that are held, waiting or retrying.';
comment on column treadle.dag_overview.blocked is 'Tasks blocked by a question or an event.';
comment on column treadle.dag_overview.roots is 'Ids of tasks without dependencies inside the DAG.';
comment on column treadle.dag_overview.leaves is
'Ids of tasks that no task inside the DAG depends on.';
comment on column treadle.dag_overview.budget_usd is 'Limit of its own budget, in dollars.';
comment on column treadle.dag_overview.cost_usd is 'What its tasks have cost, in dollars.';
comment on column treadle.dag_overview.project_id is 'Id of its project.';
comment on column treadle.dag_overview.created_by is 'Actor that created it.';
comment on column treadle.dag_overview.created_at is 'When it was created.';
comment on column treadle.dag_overview.started_at is 'When it started.';
comment on column treadle.dag_overview.ended_at is 'When it ended; null while it is open.';
comment on column treadle.dag_overview.duration_s is 'Seconds from start to end, or until now.';
comment on column treadle.dag_overview.open_waits is
'Questions and events that its tasks wait for.';
comment on column treadle.dag_overview.meta is 'Free JSON data.';

grant select on treadle.dag_overview to treadle_observer, treadle_operator;
