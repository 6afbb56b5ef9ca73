-- work_changes: all changes of work items, in order.

create view treadle.work_changes as
select
  work_log.id,
  work_log.task_id as work_item_id,
  work_log.at,
  work_log.actor,
  work_log.from_status,
  work_log.to_status,
  work_log.agent,
  work_log.note,
  work_log.number
from treadle.work_log;

comment on view treadle.work_changes is
'The log of work items: each change with its actor, time and note.';
comment on column treadle.work_changes.id is 'Id of the change.';
comment on column treadle.work_changes.work_item_id is 'Id of the work item.';
comment on column treadle.work_changes.at is 'When it happened.';
comment on column treadle.work_changes.actor is 'Actor that did it.';
comment on column treadle.work_changes.from_status is 'Status before; null for a new item.';
comment on column treadle.work_changes.to_status is 'Status after.';
comment on column treadle.work_changes.agent is 'Agent of the item.';
comment on column treadle.work_changes.note is 'Note about the change.';
comment on column treadle.work_changes.number is 'Position in the log.';

grant select on treadle.work_changes to treadle_observer, treadle_operator;
