-- reap_claims: take back tasks whose claim has run out, as failed attempts.
--
-- claim_expired: not started in time. heartbeat_timeout: no sign of life. timeout: ran too long.
-- work_stale: a work item without news, which is blocked, not failed.
-- A row that cannot be moved does not stop the others: it is reported in problem, and left out when
-- its id is passed in p_skip.
--
-- Concurrency: rows locked by others are skipped; the test is repeated on the locked row. Locks of
--              dependents are waited for only briefly, since they may come out of order.
-- Lock order:  tasks, then the history.
-- Raises:      nothing.

create or replace function treadle.reap_claims(
  p_limit  integer default 100,
  p_skip   uuid[] default '{}'
)
returns table (id uuid, reason text, status text, problem text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
-- Well below deadlock_timeout: who holds what it wants is not made to give way.
set lock_timeout = '200ms'
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := treadle.clock();
  v_stale record;
begin
  perform treadle.keep_durable();
  for v_stale in
    select
      array_agg(stale.ctid) as rows,
      array_agg(stale.id) as ids,
      array_agg(stale.reason) as reasons
    from treadle.stale_claims(v_now, p_limit, p_skip) as stale
    having count(*) > 0
  loop
    begin
      return query
      select moved.id, v_stale.reasons[array_position(v_stale.ids, moved.id)], moved.status, null
      from treadle.reap_rows(v_stale.rows, v_stale.reasons) as moved;
    exception when others then
      -- One of them is bad: each on its own, so that the rest go through.
      for v_at in 1..cardinality(v_stale.rows) loop
        begin
          return query
          select moved.id, v_stale.reasons[v_at], moved.status, null
          from treadle.reap_rows(v_stale.rows[v_at:v_at], v_stale.reasons[v_at:v_at]) as moved;
        exception
          when lock_not_available then
            -- The next pass takes it; the rest of this one is not held up as long.
            perform set_config('lock_timeout', '10ms', true);
          when others then
            return query select v_stale.ids[v_at], v_stale.reasons[v_at], null, sqlerrm;
        end;
      end loop;
    end;
  end loop;
end;
$$;

comment on function treadle.reap_claims(integer, uuid[]) is
'Fail claims that ran out; says of each why and what becomes of its task.';

revoke all on function treadle.reap_claims(integer, uuid[]) from public;
grant execute on function treadle.reap_claims(integer, uuid[]) to treadle_worker;
