-- reap_rows: end the attempts of some stale claims.
--
-- Concurrency: the caller holds the rows.
-- Lock order:  tasks, then the history.
-- Raises:      nothing.

create or replace function treadle.reap_rows(p_rows tid[], p_reasons text[])
returns table (id uuid, status text)
language sql
volatile
set search_path = ''
as $$
  select moved.id, moved.status
  from treadle.end_attempts(
    p_rows,
    array(
      select case given.reason when 'timeout' then 'timeout' else 'crash' end
      from unnest(p_reasons) with ordinality as given (reason, at)
      order by given.at
    ),
    p_reasons,
    array(
      select case given.reason
        when 'claim_expired' then 'claimed but not started in time'
        when 'heartbeat_timeout' then 'no heartbeat: the worker is gone or stuck'
        else 'ran longer than its timeout'
      end
      from unnest(p_reasons) with ordinality as given (reason, at)
      order by given.at
    ),
    null,
    null
  ) as moved
$$;

comment on function treadle.reap_rows(tid[], text[]) is
'Internal: turns stale claims into failed attempts.';

revoke all on function treadle.reap_rows(tid[], text[]) from public;
