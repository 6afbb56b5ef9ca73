-- close_full: close gates whose limit cut off a task, until there is room for it.
--
-- Concurrency: the caller holds the gates.
-- Lock order:  gates.
-- Raises:      nothing.

create or replace function treadle.close_full(
  p_keys   text[],
  p_short  numeric[],
  p_used   numeric[],
  p_now    timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_until timestamptz;
begin
  with closed as (
    update treadle.gates
    set
      closed_until = treadle.room_at(gates.key, given.short, given.used, p_now),
      closed_at = p_now,
      closed_by = null,
      reason = 'rate limit'
    from unnest(p_keys, p_short, p_used) as given (key, short, used)
    where gates.key = given.key and given.short is not null
    returning gates.closed_until
  )

  select min(closed.closed_until) into v_until from closed;
  perform treadle.wake_promoter(v_until);
end;
$$;

comment on function treadle.close_full(text[], numeric[], numeric[], timestamptz) is
'Internal: what is full is left out of claims until it has room again.';

revoke all on function treadle.close_full(text[], numeric[], numeric[], timestamptz) from public;
