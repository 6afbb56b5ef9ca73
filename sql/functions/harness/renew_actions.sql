-- renew_actions: renew the leases of actions that a harness executes; returns those that it still
-- holds.
--
-- Concurrency: rows are locked in id order; the token is checked on the locked row.
-- Lock order:  harness_actions.

create or replace function treadle.renew_actions(
  p_ids      uuid[],
  p_tokens   uuid[],
  p_lease_s  double precision default 60
)
returns setof uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.check_array_lengths(p_ids, p_tokens);
  return query
  with held as materialized (
    select harness_actions.task_id
    from unnest(p_ids, p_tokens) as given (id, token)
    inner join treadle.harness_actions
      on given.id = harness_actions.task_id and given.token = harness_actions.token
    where harness_actions.status = 'executing'
    order by harness_actions.task_id
    for no key update of harness_actions
  )

  update treadle.harness_actions
  set lease_until = treadle.clock() + make_interval(secs => p_lease_s)
  from held
  where harness_actions.task_id = held.task_id
  returning harness_actions.task_id;
end;
$$;

comment on function treadle.renew_actions(uuid[], uuid[], double precision) is
'Renew the leases of actions that are being executed.';

grant execute on function treadle.renew_actions(uuid[], uuid[], double precision)
to treadle_producer;
