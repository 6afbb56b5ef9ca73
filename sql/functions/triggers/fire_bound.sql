-- fire_bound: why a trigger may not fire now: the chain is too long, or the hour is full.
--
-- Concurrency: reads; one session fires at a time, and sees what it has fired itself.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.fire_bound(
  p_trigger  treadle.triggers,
  p_depth    integer,
  p_now      timestamptz
)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select case
    when p_depth > p_trigger.max_depth
      then format('%s triggers led to it, max_depth is %s', p_depth - 1, p_trigger.max_depth)
    when p_trigger.max_per_hour <= (
      select count(*)
      from (
        select from treadle.trigger_fires
        where
          trigger_fires.trigger_id = p_trigger.id
          and trigger_fires.fired_at > p_now - interval '1 hour'
          and trigger_fires.verdict = 'fired'
        limit p_trigger.max_per_hour
      ) as lately
    )
      then format('it fired %s times within an hour, max_per_hour', p_trigger.max_per_hour)
  end
$$;

comment on function treadle.fire_bound(treadle.triggers, integer, timestamptz) is
'Internal: the bound that keeps a trigger from firing; null when none does.';

revoke all on function treadle.fire_bound(treadle.triggers, integer, timestamptz) from public;
