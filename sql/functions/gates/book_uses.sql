-- book_uses: enter what was used at gates that are limited by rate.
--
-- Concurrency: the caller holds the gates.
-- Lock order:  gate_uses.
-- Raises:      nothing.

create or replace function treadle.book_uses(p_keys text[], p_amounts numeric[], p_now timestamptz)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  insert into treadle.gate_uses (key, slot, amount)
  select gates.key, treadle.gate_slot(p_now, gates.period_s), sum(given.amount)
  from unnest(p_keys, p_amounts) as given (key, amount)
  inner join treadle.gates on given.key = gates.key
  where given.amount > 0 and gates.unit is not null
  group by gates.key
  order by gates.key
  on conflict (key, slot) do update set amount = gate_uses.amount + excluded.amount;

  delete from treadle.gate_uses
  using treadle.gates
  where
    gates.key = any (p_keys)
    and gate_uses.key = gates.key
    and gate_uses.slot < treadle.gate_slot(p_now, gates.period_s) - 60;
$$;

comment on function treadle.book_uses(text[], numeric[], timestamptz) is
'Internal: adds to the use of gates and drops what is more than a period ago.';

revoke all on function treadle.book_uses(text[], numeric[], timestamptz) from public;
