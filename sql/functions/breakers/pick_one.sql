-- pick_one: lock the best task of one type that an agent may have, whatever its breaker says.
--
-- Concurrency: rows locked by others are skipped, never waited for.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.pick_one(
  p_agent   treadle.agents,
  p_queues  text[],
  p_type    text,
  p_now     timestamptz
)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_from record;
begin
  v_from := treadle.probe_lanes(p_agent, p_queues, p_type, p_now);
  if v_from.lanes is null then
    return '{}';
  end if;
  return treadle.pick_tasks(
    v_from.lanes, v_from.shifts, 1,
    case
      when exists (select from treadle.budgets) then treadle.agent_can_spend(p_agent.id, p_now)
    end
  );
end;
$$;

comment on function treadle.pick_one(treadle.agents, text[], text, timestamptz) is
'Internal: locks the task that would be claimed first if its breaker were closed.';

revoke all on function treadle.pick_one(treadle.agents, text[], text, timestamptz) from public;
