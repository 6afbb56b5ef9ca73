-- claim_rows: lock, count and take the best tasks that an agent may have now.
--
-- Round by round: what a rate limit or a budget keeps back leaves room, and what keeps it back is
-- closed or parked, so that the next round finds other tasks. Without gates and budgets there is
-- one round.
--
-- Concurrency: tasks are taken with skip locked. Budgets and gates are waited for in the first
--              round only: later ones may meet them in another order.
-- Lock order:  tasks (never waited for), breakers, budgets, gates.
-- Raises:      TR202 unknown queue.

create or replace function treadle.claim_rows(
  p_agent   treadle.agents,
  p_queues  text[],
  p_types   text[],
  p_limit   integer,
  p_start   boolean,
  p_token   uuid,
  p_now     timestamptz
)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit   integer := least(p_limit, p_agent.max_concurrent_tasks);
  v_taken   tid[] := '{}';
  v_open    record;
  v_rows    tid[];
  v_picked  integer;
  v_at      timestamptz := p_now;
begin
  for v_round in 1..10 loop
    exit when cardinality(v_taken) >= v_limit;
    v_open := treadle.open_lanes(p_agent, p_queues, p_types, p_now);
    v_rows := '{}';
    if v_open.probing and v_round = 1 then
      v_rows := treadle.pick_probe(p_agent, p_queues, p_types, p_token, p_now);
      -- Its lane is not among the open ones, and may be limited all the same.
      v_open.limited := v_open.limited or v_rows <> '{}';
    end if;
    if v_open.lanes is not null then
      v_rows := v_rows || treadle.pick_tasks(
        v_open.lanes, v_open.shifts, v_limit - cardinality(v_taken) - cardinality(v_rows),
        case when v_open.budgeted then treadle.agent_can_spend(p_agent.id, p_now) end,
        case when v_open.fair then v_open.projects end
      );
    end if;
    v_picked := cardinality(v_rows);
    exit when v_picked = 0;
    if v_open.budgeted then
      v_rows := treadle.afford_rows(v_rows, p_agent.id, p_now, v_round = 1);
    end if;
    if v_open.limited then
      v_rows := treadle.pass_gates(v_rows, v_round = 1);
      -- Gates were waited for: the claim begins, and is counted, after all that it has seen.
      v_at := treadle.clock();
    end if;
    v_rows := treadle.take_rows(v_rows, p_agent, p_token, p_start, v_open.budgeted, v_at);
    if v_open.budgeted then
      perform treadle.reserve_rows(v_rows, p_agent.id, p_now);
    end if;
    if v_open.limited then
      perform treadle.charge_gates(v_rows, v_at);
    end if;
    v_taken := v_taken || v_rows;
    exit when cardinality(v_rows) = v_picked;
  end loop;
  return v_taken;
end;
$$;

comment on function treadle.claim_rows(
  treadle.agents, text[], text[], integer, boolean, uuid, timestamptz
) is 'Internal: claims up to p_limit tasks for an agent and returns where they are.';

revoke all on function treadle.claim_rows(
  treadle.agents, text[], text[], integer, boolean, uuid, timestamptz
) from public;
