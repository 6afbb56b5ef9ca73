-- work_changes: everything that happened to work items, in order.

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
'The log of work items: who changed what, when, and what was said.';

grant select on treadle.work_changes to treadle_observer, treadle_operator;
