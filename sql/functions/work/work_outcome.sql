-- work_outcome: how a work item ended that is in this state; null while it goes on.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.work_outcome(p_status text)
returns text
language sql
immutable
parallel safe
return case
  when p_status = 'completed' then 'success'
  when p_status in ('failed', 'cancelled') then p_status
end;

comment on function treadle.work_outcome(text) is
'Internal: success, failed or cancelled for the end states of the work API.';

revoke all on function treadle.work_outcome(text) from public;
grant execute on function treadle.work_outcome(text) to treadle_observer, treadle_operator;
