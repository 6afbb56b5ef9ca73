-- visible_tasks: the tasks that a restricted token sees; null does not restrict.
--
-- A token may be restricted to queues, to a project and to an agent. This file is the only place
-- that decides what such a token sees. A task that no agent has claimed, and that is assigned to
-- none, is visible to every agent. Rows without a task, such as events of pruned tasks, are hidden.
--
-- visible_tasks and visible_dags run with the rights of the caller and without a SET clause, so
-- that PostgreSQL inlines them: a list looks each of its rows up by the primary key. Their bodies
-- are text, because views are dropped and created again after functions. All names and operators
-- are qualified, so that the caller's search_path does not matter.

-- is_visible: return whether a token sees a task with this queue, project and agent.
--
-- The planner assumes that a coalesce is true for half of the rows. It therefore reads a page of a
-- list in the order of its index, whatever the statistics are for queues, projects and agents.
create or replace function treadle.is_visible(
  p_task_queue    text,
  p_task_project  uuid,
  p_task_agent    text,
  p_queues        text[],
  p_project       uuid,
  p_agent         text
)
returns boolean
language sql
immutable
parallel safe
return (
  (p_queues is null or coalesce(p_task_queue = any (p_queues), false))
  and (p_project is null or coalesce(p_task_project = p_project, false))
  and (p_agent is null or coalesce(p_task_agent = p_agent, true))
);

comment on function treadle.is_visible(text, uuid, text, text[], uuid, text) is
'Whether a token for these queues, this project and this agent sees a task; null is any.';

create or replace function treadle.visible_tasks(p_queues text[], p_project uuid, p_agent text)
returns table (id uuid)
language sql
stable
parallel safe
as $$
  select task_access.id
  from treadle.task_access
  where treadle.is_visible(
    task_access.queue, task_access.project_id, task_access.agent, p_queues, p_project, p_agent
  )
$$;

comment on function treadle.visible_tasks(text[], uuid, text) is
'The tasks that a token for these queues, this project and this agent sees; null is any.';

-- visible_dags: the DAGs of which a token sees every task, and at least one.
create or replace function treadle.visible_dags(p_queues text[], p_project uuid, p_agent text)
returns table (id uuid)
language sql
stable
parallel safe
as $$
  select dag_overview.id
  from treadle.dag_overview
  where
    exists (
      select from treadle.task_access
      where task_access.dag_id operator(pg_catalog.=) dag_overview.id
    )
    and not exists (
      select from treadle.task_access
      where
        task_access.dag_id operator(pg_catalog.=) dag_overview.id
        and not treadle.is_visible(
          task_access.queue, task_access.project_id, task_access.agent,
          p_queues, p_project, p_agent
        )
    )
$$;

comment on function treadle.visible_dags(text[], uuid, text) is
'The DAGs of which a token for these queues, this project and this agent sees every task.';

grant execute on function treadle.is_visible(text, uuid, text, text[], uuid, text) to
treadle_observer, treadle_operator;
grant execute on function treadle.visible_tasks(text[], uuid, text) to
treadle_observer, treadle_operator;
grant execute on function treadle.visible_dags(text[], uuid, text) to
treadle_observer, treadle_operator;
