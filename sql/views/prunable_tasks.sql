-- prunable_tasks: finished tasks that are older than their queue keeps them.
--
-- Some of them stay all the same, for others that need them: see treadle.pinned_tasks.

create view treadle.prunable_tasks as
select
  tasks.ctid as place,
  tasks.id,
  tasks.queue,
  tasks.type,
  tasks.status,
  tasks.completed_at,
  tasks.dag_id,
  tasks.parent_id
from treadle.tasks
where
  tasks.completed_at is not null
  and tasks.completed_at <= (
    select
      (select treadle.clock()) - make_interval(
        secs => case tasks.status
          when 'completed' then queues.keep_completed_s
          when 'cancelled' then queues.keep_cancelled_s
          else queues.keep_dead_s
        end
      )
    from treadle.queues
    where queues.name = tasks.queue
  )
  -- A result that its consumer has not taken yet is still wanted.
  and (tasks.consumer is null or tasks.status <> 'completed' or tasks.consumed_token is not null);

comment on view treadle.prunable_tasks is
'Finished tasks whose time is over: the pruner takes them unless something else needs them.';

grant select on treadle.prunable_tasks to treadle_observer, treadle_operator;
