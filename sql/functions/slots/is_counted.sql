-- is_counted: whether a slot or money may have to be given back when a claim of a task ends.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.is_counted(p_task treadle.tasks)
returns boolean
language sql
immutable
parallel safe
return p_task.budgeted or p_task.concurrency_key is not null;

comment on function treadle.is_counted(treadle.tasks) is
'Internal: a budget counted the last claim of the task, or it has a concurrency key.';

revoke all on function treadle.is_counted(treadle.tasks) from public;
