-- next_action_at: return the earliest time at which a harness action is due or expires.
--
-- New results are not included: the harness is notified of them and polls every few seconds.

create or replace function treadle.next_action_at()
returns timestamptz
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select min(coalesce(harness_actions.next_try_at, harness_actions.lease_until))
  from treadle.harness_actions
  where harness_actions.status in ('executing', 'waiting')
$$;

comment on function treadle.next_action_at() is
'When the next harness action is due, or will be marked as interrupted.';

grant execute on function treadle.next_action_at() to treadle_producer;
