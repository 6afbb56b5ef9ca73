-- take_over_dispatches: take over submissions whose dispatcher has stopped.
--
-- The new dispatcher asks the agents for the state of each submission, and they have the full time
-- to respond.
--
-- Concurrency: skips locked rows; the former holder can change nothing more.
-- Lock order:  dispatches.
-- Raises:      TR001 invalid argument.

create or replace function treadle.take_over_dispatches(
  p_holder   uuid,
  p_limit    integer default 100,
  p_lease_s  double precision default 15
)
returns setof treadle.dispatch_target
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := treadle.clock();
begin
  perform treadle.check_lease(p_holder, p_holder, p_lease_s, 2592000);
  return query
  with left_behind as materialized (
    select dispatches.ctid
    from treadle.dispatches
    where dispatches.ended_at is null and dispatches.lease_until <= v_now
    order by dispatches.sent_at
    limit p_limit
    for no key update skip locked
  ),

  taken as (
    update treadle.dispatches
    set
      holder = p_holder,
      lease_until = v_now + make_interval(secs => p_lease_s),
      heard_at = v_now
    from left_behind
    where dispatches.ctid = left_behind.ctid
    returning dispatches.*
  )

  select (treadle.dispatch_target_of(taken::treadle.dispatches)).*
  from taken
  order by taken.sent_at;
end;
$$;

comment on function treadle.take_over_dispatches(uuid, integer, double precision) is
'Take over submissions whose lease has expired.';

grant execute on function
treadle.take_over_dispatches(uuid, integer, double precision) to treadle_worker;
