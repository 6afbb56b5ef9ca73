-- why_probe: a task goes first although its lane is shut: it is the probe of its breaker.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_probe(
  p_task  treadle.tasks,
  p_lane  treadle.lanes,
  p_now   timestamptz
)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    format(
      'claimable now: the next claim of agent %s takes it, as the probe of its breaker',
      (takers.agent).id
    ),
    'claimable',
    null::timestamptz,
    jsonb_build_object('agent', (takers.agent).id, 'position', 1, 'probe', true)
  from treadle.takers(p_lane, p_now) as takers
  where
    takers.has_room
    and exists (
      select from treadle.breakers
      where breakers.type = p_lane.type and breakers.probe_at <= p_now
    )
    and treadle.goes_first(p_task, takers.agent, p_now)
  order by (takers.agent).id
  limit 1
$$;

comment on function treadle.why_probe(treadle.tasks, treadle.lanes, timestamptz) is
'Internal: that the next claim takes a task to see whether its type works again.';

revoke all on function treadle.why_probe(treadle.tasks, treadle.lanes, timestamptz) from public;
