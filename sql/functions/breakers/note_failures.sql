-- note_failures: failed attempts count for the breakers of their types.
--
-- Rate limits, refusals, outputs that were not accepted, money that ran out and a database that was
-- away say nothing about whether the type works.
--
-- Concurrency: the caller holds the tasks.
-- Lock order:  breakers by type, after tasks and dags.
-- Raises:      nothing.

create or replace function treadle.note_failures(p_ended treadle.ended_attempt[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_counted treadle.ended_attempt[] := array(
    select ended
    from unnest(p_ended) as ended
    where
      ended.class in ('error', 'crash', 'timeout', 'auth_failure')
      and ended.next <> 'cancelled'
      -- Never started: that is not the fault of the task.
      and ended.reason <> 'claim_expired'
  );
begin
  if v_counted = '{}' then
    return;
  end if;
  perform treadle.fail_type(failed.type, failed.attempts, p_now)
  from (
    select tasks.type, array_agg(ended) as attempts
    from unnest(v_counted) as ended
    inner join treadle.tasks on ended.task_id = tasks.id
    group by tasks.type
    order by tasks.type
  ) as failed;
end;
$$;

comment on function treadle.note_failures(treadle.ended_attempt[], timestamptz) is
'Internal: failed attempts count for the breakers of their types.';

revoke all on function treadle.note_failures(treadle.ended_attempt[], timestamptz) from public;
