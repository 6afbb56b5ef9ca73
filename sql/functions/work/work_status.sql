-- work_status: the state of a task in the words of the work API.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.work_status(p_status text)
returns text
language sql
immutable
parallel safe
return case
  when p_status = 'created' then 'queued'
  when p_status in ('pending', 'ready', 'retrying') then 'dispatched'
  when p_status in ('claimed', 'running', 'validating') then 'in_progress'
  when p_status = 'dead_lettered' then 'failed'
  else p_status
end;

comment on function treadle.work_status(text) is
'Internal: queued, dispatched, in_progress, blocked, completed, failed or cancelled.';

revoke all on function treadle.work_status(text) from public;
grant execute on function treadle.work_status(text) to treadle_observer, treadle_operator;
