-- room_at: when a limit has room for so much again.
--
-- Concurrency: the caller holds the gate.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.room_at(
  p_key   text,
  p_need  numeric,
  p_new   numeric,
  p_now   timestamptz
)
returns timestamptz
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    -- A little later: the sixtieth must be over by any rounding.
    to_timestamp((min(used.slot) + 61) * gate.period_s / 60) + interval '10 microseconds'
  from treadle.gates as gate
  cross join lateral (
    select
      uses.slot,
      sum(uses.amount) over () - sum(uses.amount) over (order by uses.slot) as stays
    from (
      select gate_uses.slot, gate_uses.amount
      from treadle.gate_uses
      where
        gate_uses.key = gate.key
        and gate_uses.slot >= treadle.gate_slot(p_now, gate.period_s) - 60
      union all
      select treadle.gate_slot(p_now, gate.period_s), p_new
    ) as uses
  ) as used
  where
    gate.key = p_key
    and used.stays < gate.amount
    and used.stays + p_need <= gate.amount
  group by gate.period_s
$$;

comment on function treadle.room_at(text, numeric, numeric, timestamptz) is
'Internal: when enough of what was used, p_new of it just now, is a period ago.';

revoke all on function treadle.room_at(text, numeric, numeric, timestamptz) from public;
