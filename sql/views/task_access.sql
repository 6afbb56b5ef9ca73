-- task_access: where each task belongs; visible_tasks and visible_dags read it.

create view treadle.task_access as
select
  tasks.id,
  tasks.queue,
  tasks.project_id,
  coalesce(tasks.agent_id, tasks.assigned_agent) as agent,
  tasks.dag_id
from treadle.tasks;

comment on view treadle.task_access is
'The queue, project, agent and DAG of each task, for access checks.';
comment on column treadle.task_access.id is 'Id of the task.';
comment on column treadle.task_access.queue is 'Name of its queue.';
comment on column treadle.task_access.project_id is 'Id of its project.';
comment on column treadle.task_access.agent is
'Agent that has claimed it, or that it is assigned to.';
comment on column treadle.task_access.dag_id is 'Id of its DAG.';

grant select on treadle.task_access to treadle_observer, treadle_operator;
