-- read_results: return the results of tasks that have ended; open tasks are left out, and an
-- unknown id has the status unknown.

create or replace function treadle.read_results(p_ids uuid[])
returns table (id uuid, status text, output jsonb, failure_class text, failure_reason text)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  select
    wanted.id, coalesce(tasks.status, 'unknown'), tasks.output, tasks.failure_class,
    tasks.failure_reason
  from unnest(p_ids) as wanted (id)
  left join treadle.tasks on wanted.id = tasks.id
  where tasks.id is null or tasks.completed_at is not null
$$;

comment on function treadle.read_results(uuid[]) is
'Status, output and failure of the given tasks that have ended.';

grant execute on function treadle.read_results(uuid[]) to treadle_producer, treadle_worker;
