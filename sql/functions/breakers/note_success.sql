-- note_success: completed tasks reset the breakers of their types, and a probe closes its own.
--
-- Concurrency: one look where no breaker counts; else the breakers are locked, then read.
-- Lock order:  breakers by type, after tasks and dags.
-- Raises:      nothing.

create or replace function treadle.note_success(p_ids uuid[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_types text[];
begin
  if not exists (
    select from treadle.breakers where breakers.failures > 0 or breakers.state <> 'closed'
  ) then
    return;
  end if;
  v_types := array(
    select distinct tasks.type
    from treadle.tasks
    inner join treadle.breakers on tasks.type = breakers.type
    where
      tasks.id = any (p_ids)
      and (
        (breakers.state = 'closed' and breakers.failures > 0)
        or (breakers.probe_task = tasks.id and breakers.probe_token = tasks.last_token)
      )
  );
  if v_types = '{}' then
    return;
  end if;

  perform breakers.type from treadle.breakers
  where breakers.type = any (v_types)
  order by breakers.type
  for no key update;
  update treadle.breakers
  set failures = 0
  where breakers.type = any (v_types) and breakers.state = 'closed' and breakers.failures > 0;
  perform treadle.close_breaker(breakers.type, 'the probe succeeded', tasks.completed_by, p_now)
  from treadle.breakers
  inner join treadle.tasks on breakers.probe_task = tasks.id
  where
    breakers.type = any (v_types)
    and breakers.state <> 'closed'
    and tasks.id = any (p_ids)
    and tasks.last_token = breakers.probe_token;
end;
$$;

comment on function treadle.note_success(uuid[], timestamptz) is
'Internal: completed tasks reset the breakers of their types.';

revoke all on function treadle.note_success(uuid[], timestamptz) from public;
