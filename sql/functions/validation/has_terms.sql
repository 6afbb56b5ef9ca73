-- has_terms: whether a task, or its type, says something about models, validators or reports.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.has_terms(p_task treadle.tasks, p_types text[])
returns boolean
language sql
stable
return (
  p_task.type = any (p_types)
  or pg_catalog.num_nonnulls(
    p_task.validation, p_task.report, p_task.models, p_task.fallback_models
  ) > 0
);

comment on function treadle.has_terms(treadle.tasks, text[]) is
'Internal: whether terms_of is worth a call; p_types are the demanding_types.';

revoke all on function treadle.has_terms(treadle.tasks, text[]) from public;
