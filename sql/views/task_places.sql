-- task_places: where each task belongs; for who has to know whether a caller may see it.

create view treadle.task_places as
select
  tasks.id,
  tasks.queue,
  tasks.project_id,
  coalesce(tasks.agent_id, tasks.assigned_agent) as agent
from treadle.tasks;

comment on view treadle.task_places is
'The queue and the project of each task, and who has it or is to have it.';

grant select on treadle.task_places to treadle_observer, treadle_operator;
