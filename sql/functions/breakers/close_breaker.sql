-- close_breaker: write that a breaker is closed, say so in an event, and wake who waits.
--
-- When it opened last is kept: attempts that were claimed before do not count against it.
--
-- Concurrency: the caller holds the breaker.
-- Lock order:  breakers.
-- Raises:      nothing.

create or replace function treadle.close_breaker(
  p_type   text,
  p_why    text,
  p_actor  text,
  p_now    timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  update treadle.breakers
  set state = 'closed', failures = 0, probe_at = null, probe_task = null, probe_token = null
  where breakers.type = p_type;
  insert into treadle.events (at, kind, actor, data)
  values (
    p_now, 'breaker.closed', p_actor, jsonb_build_object('type', p_type, 'why', p_why)
  );
  perform treadle.wake_gates(array['type:' || p_type]);
end;
$$;

comment on function treadle.close_breaker(text, text, text, timestamptz) is
'Internal: closes a breaker; its type flows again.';

revoke all on function treadle.close_breaker(text, text, text, timestamptz) from public;
