-- origin: return the options that say where a task comes from: the system, and its job.

create or replace function treadle.origin(p_source text, p_job text)
returns jsonb
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_strip_nulls(jsonb_build_object('source', p_source, 'source_job', p_job))
$$;
