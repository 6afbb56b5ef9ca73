-- work_status: return the status of a task in the work API.

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
'queued, dispatched, in_progress, blocked, completed, failed or cancelled.';

-- work_outcome: return the outcome of a work item with this status; null while it is open.
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
'success, failed or cancelled for the end states of the work API.';

-- work_priority: return the priority of a task on the scale of the work API, 1 (highest) to 5.
create or replace function treadle.work_priority(p_priority smallint)
returns integer
language sql
immutable
parallel safe
return pg_catalog.array_position(
  array['critical', 'high', 'normal', 'low', 'background'],
  treadle.tier_of_priority(p_priority)
);

comment on function treadle.work_priority(smallint) is
'The number of the tier that a priority is in.';

grant execute on function treadle.work_status(text) to treadle_observer, treadle_operator;
grant execute on function treadle.work_outcome(text) to treadle_observer, treadle_operator;
grant execute on function treadle.work_priority(smallint) to treadle_observer, treadle_operator;
