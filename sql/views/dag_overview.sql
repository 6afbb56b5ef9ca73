-- dag_overview: how far each DAG is, what it cost, where it begins and ends.
--
-- Roots and leaves go by the edges inside the DAG; subtasks belong to the task that spawned them.

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
    extract(epoch from coalesce(dags.ended_at, clock_timestamp()) - dags.started_at), 3
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
'One row per DAG: state, counts, roots and leaves, cost; filter by id.';

grant select on treadle.dag_overview to treadle_observer, treadle_operator;
