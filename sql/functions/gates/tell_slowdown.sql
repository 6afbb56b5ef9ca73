-- tell_slowdown: tell every worker that a gate is closed.
--
-- The seconds are for who has another clock.
--
-- Concurrency: a hint; claims look at the gate.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.tell_slowdown(
  p_key    text,
  p_until  timestamptz,
  p_now    timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_notify(
    'slowdown',
    jsonb_build_object(
      'key', p_key, 'until', p_until, 'in_s', extract(epoch from p_until - p_now)
    )::text
  );
  perform treadle.wake_promoter(p_until);
end;
$$;

comment on function treadle.tell_slowdown(text, timestamptz, timestamptz) is
'Internal: notifies slowdown with the key, until when, and in how many seconds that is.';

revoke all on function treadle.tell_slowdown(text, timestamptz, timestamptz) from public;
