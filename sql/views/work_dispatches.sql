-- work_dispatches: which agent got a work item, when, and how it ended with that agent.

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
'One row per dispatch of a work item; without an end while the agent has it, or has lost it.';
comment on column treadle.work_dispatches.id is 'Id of the dispatch.';
comment on column treadle.work_dispatches.work_item_id is 'Id of the work item.';
comment on column treadle.work_dispatches.dispatched_at is 'When it was sent or given to an agent.';
comment on column treadle.work_dispatches.agent is 'Agent that got it.';
comment on column treadle.work_dispatches.completed_at is
'When it ended with this agent; null while it is open.';
comment on column treadle.work_dispatches.outcome is 'How it ended with this agent.';
comment on column treadle.work_dispatches.number is 'Position in the log.';

grant select on treadle.work_dispatches to treadle_observer, treadle_operator;
