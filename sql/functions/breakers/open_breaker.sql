-- open_breaker: write that a breaker is open, and say so in an event.
--
-- Concurrency: the caller holds the breaker.
-- Lock order:  breakers.
-- Raises:      nothing.

create or replace function treadle.open_breaker(
  p_type     text,
  p_seconds  double precision,
  p_why      text,
  p_actor    text,
  p_now      timestamptz,
  p_data     jsonb default '{}'
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_probe_at timestamptz := p_now + make_interval(secs => p_seconds);
begin
  update treadle.breakers
  set
    state = 'open',
    opened_at = p_now,
    opened_by = p_actor,
    probe_at = v_probe_at,
    probe_task = null,
    probe_token = null
  where breakers.type = p_type;
  insert into treadle.events (at, kind, actor, data)
  values (
    p_now, 'breaker.opened', p_actor,
    jsonb_build_object('type', p_type, 'why', p_why, 'probe_at', v_probe_at) || p_data
  );
  perform treadle.wake_promoter(v_probe_at);
end;
$$;

comment on function treadle.open_breaker(text, double precision, text, text, timestamptz, jsonb) is
'Internal: opens a breaker until its probe is due.';

revoke all on function treadle.open_breaker(text, double precision, text, text, timestamptz, jsonb)
from public;
