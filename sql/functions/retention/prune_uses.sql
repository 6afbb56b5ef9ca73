-- prune_uses: forget what passed gates longer than a period ago, or gates without a rate.
--
-- Concurrency: gates that somebody counts at are locked, and skipped.
-- Lock order:  gates, gate_uses.
-- Raises:      nothing.

create or replace function treadle.prune_uses(p_limit integer)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now  timestamptz := treadle.clock();
  v_held text[] := array(
    select gates.key
    from treadle.gates
    where exists (
      select from treadle.gate_uses
      where
        gate_uses.key = gates.key
        and coalesce(gate_uses.slot < treadle.gate_slot(v_now, gates.period_s) - 60, true)
    )
    order by gates.key
    limit p_limit
    for no key update skip locked
  );
  v_gone integer;
begin
  delete from treadle.gate_uses
  using treadle.gates
  where
    gates.key = any (v_held) and gate_uses.key = gates.key
    and coalesce(gate_uses.slot < treadle.gate_slot(v_now, gates.period_s) - 60, true);
  get diagnostics v_gone = row_count;
  return v_gone;
end;
$$;

comment on function treadle.prune_uses(integer) is
'Internal: deletes uses of rate limits that count no more.';

revoke all on function treadle.prune_uses(integer) from public;
