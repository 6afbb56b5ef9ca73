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
  task_options.notes
from treadle.tasks
left join treadle.task_options on tasks.has_options and tasks.id = task_options.task_id
where tasks.queue = 'work';

comment on view treadle.work_items is
'Work items as the work API names them: status, priority 1 to 5, outcome.';
comment on column treadle.work_items.id is 'Id of the work item.';
comment on column treadle.work_items.project_id is 'Id of its project.';
comment on column treadle.work_items.project is 'Name of the project.';
comment on column treadle.work_items.type is 'Type of the item.';
comment on column treadle.work_items.description is 'What is to be done.';
comment on column treadle.work_items.payload is 'Data of the item.';
comment on column treadle.work_items.priority is 'Priority from 1 (highest) to 5.';
comment on column treadle.work_items.status is 'Status in the work API.';
comment on column treadle.work_items.assigned_agent is 'Agent that it is given to.';
comment on column treadle.work_items.created_by is 'Actor that created it.';
comment on column treadle.work_items.created_at is 'When it was created.';
comment on column treadle.work_items.updated_at is 'When it was changed last.';
comment on column treadle.work_items.completed_at is 'When it ended; null while it is open.';
comment on column treadle.work_items.outcome is
'success, failed or cancelled; null while it is open.';
comment on column treadle.work_items.notes is 'Notes on the item.';

grant select on treadle.work_items to treadle_observer, treadle_operator;
