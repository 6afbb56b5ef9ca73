-- renew_dispatches: renew the leases of a dispatcher and the claims of the submissions it follows.
--
-- Returns all submissions that it follows, each with whether its claim is valid. p_heard lists
-- the claims whose agents have responded since the last call.
--
-- Concurrency: rows are locked in id order; submissions taken over by others are not touched.
-- Lock order:  tasks, dispatches.
-- Raises:      TR001 invalid argument.

create or replace function treadle.renew_dispatches(
  p_holder   uuid,
  p_heard    uuid[] default '{}',
  p_lease_s  double precision default 15,
  p_keep_s   double precision default 86400
)
returns setof treadle.dispatch_target
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_now timestamptz := treadle.clock();
begin
  perform treadle.check_lease(p_holder, p_holder, p_lease_s, p_keep_s);
  with held as materialized (
    select tasks.id
    from treadle.dispatches
    inner join treadle.tasks
      on dispatches.task_id = tasks.id and dispatches.claim_token = tasks.claim_token
    where dispatches.holder = p_holder and dispatches.ended_at is null
    order by tasks.id
    for no key update of tasks
  )

  update treadle.tasks
  set
    heartbeat_at = case when tasks.started_at is not null then v_now end,
    lease_until = greatest(tasks.lease_until, v_now + make_interval(secs => p_keep_s))
  from held
  where tasks.id = held.id and tasks.claim_token is not null;

  return query
  with renewed as (
    update treadle.dispatches
    set
      lease_until = v_now + make_interval(secs => p_lease_s),
      heard_at = case
        when dispatches.claim_token = any (p_heard) then v_now else dispatches.heard_at
      end
    where dispatches.holder = p_holder and dispatches.ended_at is null
    returning dispatches.*
  )

  select (treadle.dispatch_target_of(renewed::treadle.dispatches)).*
  from renewed
  order by renewed.task_id;
end;
$$;

comment on function treadle.renew_dispatches(
  uuid, uuid[], double precision, double precision
) is 'Renew the submissions that a dispatcher follows, with their claims; returns them all.';

grant execute on function
treadle.renew_dispatches(uuid, uuid[], double precision, double precision) to treadle_worker;
