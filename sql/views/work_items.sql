-- work_items: the tasks of queue `work` as the work API shows them.

create view treadle.work_items as
select
  tasks.id,
  tasks.project_id,
  (select projects.name from treadle.projects where projects.id = tasks.project_id) as project,
  tasks.type,
  coalesce(
    (
      select work_log.note
      from treadle.work_log
      where work_log.task_id = tasks.id and work_log.from_status is null
    ),
    tasks.title,
    tasks.type
  ) as description,
  tasks.spec as payload,
  treadle.work_priority(tasks.priority) as priority,
  treadle.work_status(tasks.status) as status,
  tasks.assigned_agent,
  tasks.created_by,
  tasks.created_at,
  greatest(
    tasks.created_at,
    tasks.completed_at,
    (
      select work_log.at
      from treadle.work_log
      where work_log.task_id = tasks.id
      order by work_log.number desc
      limit 1
    )
  ) as updated_at,
  tasks.completed_at,
  treadle.work_outcome(treadle.work_status(tasks.status)) as outcome,
  tasks.notes
from treadle.tasks
where tasks.queue = 'work';

comment on view treadle.work_items is
'Work items in the words of the work API: status, priority 1 to 5, outcome once ended.';

grant select on treadle.work_items to treadle_observer, treadle_operator;
