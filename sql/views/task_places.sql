-- task_places: where each task belongs; for who has to know whether a caller may see it.

create view treadle.task_places as
select
  tasks.id,
  tasks.queue,
  projects.name as project,
  coalesce(tasks.agent_id, tasks.assigned_agent) as agent
from treadle.tasks
left join treadle.projects on tasks.project_id = projects.id;

comment on view treadle.task_places is
'The queue and the project of each task, and who has it or is to have it.';

grant select on treadle.task_places to treadle_observer, treadle_operator;
