-- why_turn: when the turn of a ready task comes: with the next claim, or after so many others.
--
-- Counted for the agent that gets to it first.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_turn(
  p_task  treadle.tasks,
  p_lane  treadle.lanes,
  p_now   timestamptz
)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_turn record;
begin
  select
    turns.*,
    (turns.agent).id as agent_id,
    turns.has_room and treadle.goes_first(p_task, turns.agent, p_now) as first
  into v_turn
  from treadle.turns_of(p_task, p_lane, p_now) as turns
  order by first desc, turns.has_room desc, turns.ahead, agent_id
  limit 1;
  if not found then
    return query select * from treadle.why_probe(p_task, p_lane, p_now);
    return;
  end if;

  detail := jsonb_build_object(
    'agent', v_turn.agent_id, 'position', v_turn.ahead + 1, 'of', v_turn.ready,
    'queues', v_turn.queues, 'fair', v_turn.fair
  );
  if v_turn.first then
    reason := 'claimable';
    sentence := format('claimable now: the next claim of agent %s takes it', v_turn.agent_id);
  else
    reason := 'position';
    sentence := format(
      '%sposition %s of %s in queue%s %s%s',
      case when v_turn.fair then 'projects take turns; ' else '' end,
      case when v_turn.ahead >= 10000 then 'over 10000' else (v_turn.ahead + 1)::text end,
      case when v_turn.ready > 10000 then 'more than 10000' else v_turn.ready::text end,
      case when cardinality(v_turn.queues) > 1 then 's' else '' end,
      array_to_string(v_turn.queues, ', '),
      case when v_turn.fair then ' among those of its project' else '' end
    );
  end if;
  return next;
end;
$$;

comment on function treadle.why_turn(treadle.tasks, treadle.lanes, timestamptz) is
'Internal: that a task is claimable now, or its position in the order of claims.';

revoke all on function treadle.why_turn(treadle.tasks, treadle.lanes, timestamptz) from public;
