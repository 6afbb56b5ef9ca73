-- prunable_tasks: ended tasks that are older than the retention of their queue.
--
-- Some of them are kept because other tasks need them; see treadle.pinned_tasks.

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
      (select (select treadle.view_clock())) - make_interval(
        secs => case tasks.status
          when 'completed' then queues.keep_completed_s
          when 'cancelled' then queues.keep_cancelled_s
          else queues.keep_dead_s
        end
      )
    from treadle.queues
    where queues.name = tasks.queue
  )
  -- A result that its consumer has not taken yet is kept.
  and (
    not tasks.has_options or not exists (
      select from treadle.results
      where
        results.task_id = tasks.id and results.consumer is not null
        and results.consumed_token is null
    )
  );

comment on view treadle.prunable_tasks is
'Ended tasks whose retention is over; the pruner deletes them unless other tasks need them.';
comment on column treadle.prunable_tasks.place is
'Physical position (ctid), used to read in batches.';
comment on column treadle.prunable_tasks.id is 'Id of the task.';
comment on column treadle.prunable_tasks.queue is 'Name of its queue.';
comment on column treadle.prunable_tasks.type is 'Name of its task type.';
comment on column treadle.prunable_tasks.status is 'State in which it ended.';
comment on column treadle.prunable_tasks.completed_at is
'When the task ended; null while it is open.';
comment on column treadle.prunable_tasks.dag_id is 'Id of its DAG; null outside a DAG.';
comment on column treadle.prunable_tasks.parent_id is 'Id of the task that spawned it.';

grant select on treadle.prunable_tasks to treadle_observer, treadle_operator;
