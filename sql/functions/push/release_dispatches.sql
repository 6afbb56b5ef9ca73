-- release_dispatches: release the submissions of a dispatcher that stops, so that others can follow
-- them.
--
-- Lock order:  dispatches.

create or replace function treadle.release_dispatches(p_holder uuid)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_left integer;
begin
  update treadle.dispatches
  set lease_until = least(dispatches.lease_until, treadle.clock())
  where dispatches.holder = p_holder and dispatches.ended_at is null;
  get diagnostics v_left = row_count;
  return v_left;
end;
$$;

comment on function treadle.release_dispatches(uuid) is
'End the leases of a dispatcher; returns how many submissions it releases.';

grant execute on function treadle.release_dispatches(uuid) to treadle_worker;
