-- failure_class_of: the class of a failure: as reported, or found in its text.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.failure_class_of(p_class text, p_error text)
returns text
language sql
immutable
parallel safe
return case
  when p_class in (
    'timeout', 'crash', 'rate_limit', 'invalid_output', 'error', 'auth_failure',
    'budget_exceeded', 'refused', 'unavailable'
  ) then p_class
  when treadle.rate_limit_in(p_error) then 'rate_limit'
  else 'error'
end;

comment on function treadle.failure_class_of(text, text) is
'Internal: a class that is not given or not known is error, unless the text tells of a rate limit.';

revoke all on function treadle.failure_class_of(text, text) from public;
