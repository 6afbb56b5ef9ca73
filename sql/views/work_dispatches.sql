-- work_dispatches: who got a work item, when, and how it ended with that agent.

create view treadle.work_dispatches as
select
  given.id,
  given.task_id as work_item_id,
  given.at as dispatched_at,
  given.agent,
  ended.at as completed_at,
  treadle.work_outcome(ended.to_status) as outcome,
  given.number
from treadle.work_log as given
left join lateral (
  select
    later.at,
    later.to_status,
    later.handed_over
  from treadle.work_log as later
  where
    later.task_id = given.task_id
    and later.number > given.number
    and (later.handed_over or later.to_status in ('completed', 'failed', 'cancelled'))
  order by later.number
  limit 1
) as ended on not ended.handed_over
where given.handed_over;

comment on view treadle.work_dispatches is
'One row per dispatch of a work item; without an end while the agent has it, or lost it.';

grant select on treadle.work_dispatches to treadle_observer, treadle_operator;
