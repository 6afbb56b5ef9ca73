-- demand_fresh: refuse a token whose task was taken back, and is the next one of its agent again.
--
-- A claim does not give a task to its old token: without a word, the agent would believe that
-- nothing waits.
--
-- Concurrency: reads; the caller has claimed nothing.
-- Lock order:  none.
-- Raises:      TR101 claim lost.

create or replace function treadle.demand_fresh(p_url text, p_token uuid)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_id uuid;
begin
  select head.id into v_id
  from treadle.lanes
  cross join lateral (
    select tasks.id, tasks.last_token
    from treadle.tasks
    where tasks.lane_id = lanes.id and tasks.status = 'ready'
    order by tasks.rank, tasks.id
    limit 1
  ) as head
  where
    lanes.queue = 'harness' and lanes.agent_id = p_url
    and (
      head.last_token = p_token
      or exists (
        select from treadle.attempts
        where attempts.task_id = head.id and attempts.claim_token = p_token
      )
    )
  limit 1;
  if found then
    perform treadle.refuse(
      format('task %s was taken back from the claim with this token', v_id),
      jsonb_build_object('task_id', v_id), 'Ask again with a fresh token.', 'TR101'
    );
  end if;
end;
$$;

comment on function treadle.demand_fresh(text, uuid) is
'Internal: raises for a token whose task of the harness was taken back.';

revoke all on function treadle.demand_fresh(text, uuid) from public;
