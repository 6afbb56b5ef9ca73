-- money_needed: what a task may still cost; empty for one without a limit.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.money_needed(p_task treadle.tasks)
returns numeric
language sql
immutable
parallel safe
return case
  when p_task.max_cost_usd is not null
    then greatest(p_task.max_cost_usd - p_task.cost_usd, 0)
end;

comment on function treadle.money_needed(treadle.tasks) is
'Internal: what a claim of the task reserves.';

revoke all on function treadle.money_needed(treadle.tasks) from public;
