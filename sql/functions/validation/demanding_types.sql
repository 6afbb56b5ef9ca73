-- demanding_types: the types that say something about models, validators or reports.
--
-- Most have none: then claims and completions look no further. In plpgsql, which keeps its plan.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.demanding_types()
returns text[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select task_types.name
    from treadle.task_types
    where
      num_nonnulls(
        task_types.validation, task_types.report, task_types.models, task_types.fallback_models
      ) > 0
  );
end;
$$;

comment on function treadle.demanding_types() is
'Internal: the names of types with terms of their own.';

revoke all on function treadle.demanding_types() from public;
