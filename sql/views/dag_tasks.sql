-- dag_tasks: the tasks of a DAG with what they wait for, their times and their cost.

create view treadle.dag_tasks as
select
  tasks.dag_id,
  tasks.id,
  tasks.name,
  tasks.title,
  tasks.type,
  tasks.queue,
  tasks.status,
  tasks.attempt,
  tasks.max_attempts,
  tasks.blocked_count,
  tasks.parent_id is null and not coalesce(edges.inside, false) as is_root,
  tasks.parent_id is null and not exists (
    select from treadle.dependencies
    inner join treadle.tasks as other on dependencies.task_id = other.id
    where
      dependencies.depends_on = tasks.id
      and (other.dag_id = tasks.dag_id) is true
      and other.parent_id is null
  ) as is_leaf,
  coalesce(edges.depends_on, '[]') as depends_on,
  coalesce(tasks.agent_id, tasks.completed_by) as agent_id,
  tasks.created_at,
  tasks.claimed_at,
  tasks.started_at,
  tasks.completed_at,
  tasks.run_at,
  tasks.retry_at,
  round(
    extract(
      epoch from coalesce(tasks.claimed_at, tasks.completed_at, clock_timestamp())
      - tasks.created_at
    ), 3
  ) as wait_s,
  round(
    extract(epoch from coalesce(tasks.completed_at, clock_timestamp()) - tasks.started_at), 3
  ) as run_s,
  tasks.cost_usd,
  tasks.failure_class,
  tasks.failure_reason,
  tasks.parent_id
from treadle.tasks
left join lateral (
  select
    jsonb_agg(
      jsonb_build_object(
        'id', dependencies.depends_on,
        'name', other.name,
        'optional', dependencies.optional,
        'met', dependencies.met_at is not null
      )
      order by dependencies.depends_on
    ) as depends_on,
    bool_or(
      other.dag_id = tasks.dag_id and other.parent_id is distinct from tasks.id
    ) as inside
  from treadle.dependencies
  left join treadle.tasks as other on dependencies.depends_on = other.id
  where dependencies.task_id = tasks.id
) as edges on true
where tasks.dag_id is not null;

comment on view treadle.dag_tasks is
'One row per task of a DAG, with its dependencies as json; filter by dag_id.';

grant select on treadle.dag_tasks to treadle_observer, treadle_operator;
