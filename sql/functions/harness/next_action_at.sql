-- next_action_at: the earliest moment at which the harness has something to do by itself.
--
-- A new result is not among it: the harness is nudged, and looks every few seconds.

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
'When the next action of the harness is due, or is taken for interrupted.';

grant execute on function treadle.next_action_at() to treadle_producer;
