-- why_agents: nobody can take a task: no live agent fits it, or those that do have no room.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_agents(p_lane treadle.lanes, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fits record;
  v_full text;
begin
  select
    bool_or(takers.has_room) as room,
    jsonb_agg(
      jsonb_build_object(
        'id', (takers.agent).id, 'held', takers.held, 'max', (takers.agent).max_concurrent_tasks
      )
    ) filter (where not takers.has_room) as full,
    string_agg(
      format('%s %s of %s', (takers.agent).id, takers.held, (takers.agent).max_concurrent_tasks),
      ', '
    ) as words
  into v_fits
  from treadle.takers(p_lane, p_now);
  if v_fits.room then
    return;
  end if;

  if v_fits.room is null then
    if p_lane.agent_id is null then
      return query select * from treadle.why_nobody(p_lane, p_now);
    else
      return query select * from treadle.why_assigned(p_lane, p_now);
    end if;
    return;
  end if;

  v_full := case
    when length(v_fits.words) > 300 then left(v_fits.words, 300) || ' …' else v_fits.words
  end;
  sentence := case
    when p_lane.agent_id is null
      then format('every agent that could take it is at its limit (%s)', v_full)
    else format('assigned to agent %s, which is at its limit (%s)', p_lane.agent_id, v_full)
  end;
  reason := 'agents_full';
  detail := jsonb_build_object('agents', v_fits.full);
  return next;
end;
$$;

comment on function treadle.why_agents(treadle.lanes, timestamptz) is
'Internal: that no live agent may take a task, or that all who may are at their limit.';

revoke all on function treadle.why_agents(treadle.lanes, timestamptz) from public;
