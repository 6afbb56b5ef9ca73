-- dag_tasks: the tasks of a DAG with their dependencies, times and cost.

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
      epoch from coalesce(tasks.completed_at, (select treadle.view_clock())) - tasks.created_at
      - coalesce(
        treadle.run_time(
          tasks.id,
          tasks.status,
          tasks.started_at,
          tasks.completed_at,
          (select treadle.view_clock())
        ),
        '0'
      )
    ), 3
  ) as wait_s,
  round(
    extract(
      epoch from treadle.run_time(
        tasks.id, tasks.status, tasks.started_at, tasks.completed_at, (select treadle.view_clock())
      )
    ),
    3
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
'One row per task of a DAG, with its dependencies as JSON. Filter by dag_id.';
comment on column treadle.dag_tasks.dag_id is 'Id of the DAG.';
comment on column treadle.dag_tasks.id is 'Id of the task.';
comment on column treadle.dag_tasks.name is 'Name of the task in the DAG.';
comment on column treadle.dag_tasks.title is 'Short text for people.';
comment on column treadle.dag_tasks.type is 'Name of its task type.';
comment on column treadle.dag_tasks.queue is 'Name of its queue.';
comment on column treadle.dag_tasks.status is 'Current state.';
comment on column treadle.dag_tasks.attempt is 'Number of the attempt, from 1.';
comment on column treadle.dag_tasks.max_attempts is 'How many attempts the task may use.';
comment on column treadle.dag_tasks.blocked_count is 'Dependencies that are not met yet.';
comment on column treadle.dag_tasks.is_root is 'Whether it has no dependency inside the DAG.';
comment on column treadle.dag_tasks.is_leaf is 'Whether no task inside the DAG depends on it.';
comment on column treadle.dag_tasks.depends_on is
'Its dependencies with id, name, state and policy, as JSON.';
comment on column treadle.dag_tasks.agent_id is 'Agent that has it or had it last.';
comment on column treadle.dag_tasks.created_at is 'When it was created.';
comment on column treadle.dag_tasks.claimed_at is 'When the attempt was claimed.';
comment on column treadle.dag_tasks.started_at is 'When the handler started; null if it has not.';
comment on column treadle.dag_tasks.completed_at is 'When the task ended; null while it is open.';
comment on column treadle.dag_tasks.run_at is 'The task does not start before this time.';
comment on column treadle.dag_tasks.retry_at is 'When the next attempt may start.';
comment on column treadle.dag_tasks.wait_s is
'Seconds so far, from creation to the end, in which no handler ran.';
comment on column treadle.dag_tasks.run_s is
'Seconds so far in which a handler ran, over all attempts; null if none has started.';
comment on column treadle.dag_tasks.cost_usd is 'What it has cost, in dollars.';
comment on column treadle.dag_tasks.failure_class is 'Class of the last failure.';
comment on column treadle.dag_tasks.failure_reason is 'Text of the last failure.';
comment on column treadle.dag_tasks.parent_id is 'Id of the task that spawned it.';

grant select on treadle.dag_tasks to treadle_observer, treadle_operator;
