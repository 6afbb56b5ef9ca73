-- why_assigned: why the one agent that may have a task cannot take it.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_assigned(p_lane treadle.lanes, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_agent   treadle.agents;
  v_missing text[];
begin
  select agents.* into v_agent from treadle.agents where agents.id = p_lane.agent_id;
  v_missing := array(
    select needed.name from unnest(p_lane.capabilities) as needed (name)
    where needed.name <> all (v_agent.capabilities)
  );
  sentence := format(
    'assigned to agent %s, which %s', p_lane.agent_id,
    case
      when v_agent.id is null then 'is not registered'
      when v_agent.status <> 'active' then 'is ' || v_agent.status
      when not treadle.is_live(v_agent, p_now)
        then format(
          'is offline: no sign of life since %s',
          treadle.span_words(p_now - v_agent.heartbeat_at)
        )
      when p_lane.queue <> all (v_agent.queues) then 'does not serve queue ' || p_lane.queue
      when p_lane.type <> all (v_agent.task_types) then 'does not handle type ' || p_lane.type
      else 'lacks ' || array_to_string(v_missing, ', ')
    end
  );
  reason := 'assigned';
  detail := jsonb_strip_nulls(
    jsonb_build_object(
      'agent', p_lane.agent_id, 'status', v_agent.status,
      'heartbeat_at', treadle.stamp(v_agent.heartbeat_at),
      'queue', p_lane.queue, 'type', p_lane.type, 'missing', nullif(v_missing, '{}')
    )
  );
  return next;
end;
$$;

comment on function treadle.why_assigned(treadle.lanes, timestamptz) is
'Internal: that the agent a task is assigned to is gone, or does not fit it.';

revoke all on function treadle.why_assigned(treadle.lanes, timestamptz) from public;
