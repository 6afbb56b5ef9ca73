-- lacks_report: whether a task that comes without a decision report needs one.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.lacks_report(p_task treadle.tasks, p_types text[])
returns boolean
language sql
stable
return case
  when treadle.has_terms(p_task, p_types)
    then coalesce((treadle.terms_of(p_task)).report, false)
  else false
end;

comment on function treadle.lacks_report(treadle.tasks, text[]) is
'Internal: whether its type, or the task itself, requires a report.';

revoke all on function treadle.lacks_report(treadle.tasks, text[]) from public;
