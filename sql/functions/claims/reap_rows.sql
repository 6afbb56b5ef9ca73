-- reap_rows: end the attempts of some stale claims; work items are blocked instead.
--
-- Concurrency: the caller holds the rows.
-- Lock order:  tasks, then the history.
-- Raises:      nothing.

create or replace function treadle.reap_rows(p_rows tid[], p_reasons text[])
returns table (id uuid, status text)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_stale record;
begin
  select
    coalesce(array_agg(given.place) filter (where given.reason = 'work_stale'), '{}') as work,
    array_agg(given.place) filter (where given.reason is distinct from 'work_stale') as rows,
    array_agg(given.reason) filter (where given.reason is distinct from 'work_stale') as reasons,
    array_agg(case given.reason when 'timeout' then 'timeout' else 'crash' end)
      filter (where given.reason is distinct from 'work_stale') as classes,
    array_agg(
      case given.reason
        when 'claim_expired' then 'claimed but not started in time'
        when 'heartbeat_timeout' then 'no heartbeat: the worker is gone or stuck'
        else 'ran longer than its timeout'
      end
    ) filter (where given.reason is distinct from 'work_stale') as errors
  into v_stale
  from unnest(p_rows, p_reasons) as given (place, reason);

  if v_stale.rows is not null then
    return query
    select moved.id, moved.status
    from treadle.end_attempts(
      v_stale.rows, v_stale.classes, v_stale.reasons, v_stale.errors, null, null
    ) as moved;
  end if;
  return query
  select moved.id, moved.status from treadle.stall_work(v_stale.work, treadle.clock()) as moved;
end;
$$;

comment on function treadle.reap_rows(tid[], text[]) is
'Internal: turns stale claims into failed attempts, and stale work items into blocked ones.';

revoke all on function treadle.reap_rows(tid[], text[]) from public;
