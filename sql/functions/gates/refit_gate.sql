-- refit_gate: what a changed limit means for what was used and for what waits.
--
-- Concurrency: the caller holds the gate.
-- Lock order:  gates, gate_uses.
-- Raises:      nothing.

create or replace function treadle.refit_gate(
  p_old  treadle.gates,
  p_new  treadle.gates,
  p_now  timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_used numeric := (
    select coalesce(sum(gate_uses.amount), 0)
    from treadle.gate_uses
    where
      gate_uses.key = p_old.key
      and gate_uses.slot >= treadle.gate_slot(p_now, p_old.period_s) - 60
  );
begin
  if (p_old.unit, p_old.period_s) is distinct from (p_new.unit, p_new.period_s) then
    delete from treadle.gate_uses where gate_uses.key = p_old.key;
  end if;
  -- By another period, all that still counts is taken for used just now.
  if p_old.unit = p_new.unit and p_old.period_s <> p_new.period_s then
    perform treadle.book_uses(array[p_new.key], array[v_used], p_now);
  end if;
  update treadle.gates
  set closed_until = null, closed_at = null, reason = null
  where gates.key = p_new.key and gates.closed_by is null;
  -- No lane behind it is shut any more: who is there is judged by the new limit.
  delete from treadle.gates where gates.key = format('over:%s:%s', p_old.amount, p_old.key);
  perform treadle.wake_gates(array[p_new.key]);
end;
$$;

comment on function treadle.refit_gate(treadle.gates, treadle.gates, timestamptz) is
'Internal: carries the use of a gate over to its new limit.';

revoke all on function treadle.refit_gate(treadle.gates, treadle.gates, timestamptz) from public;
