-- gate_room: what is left of each limit; null where the gate is closed.
--
-- Sixtieths are counted whole, the one that a period ago falls into included: no stretch of one
-- period ever holds more than the limit.
--
-- Concurrency: the caller holds the gates, and reads in a statement of its own.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.gate_room(p_keys text[], p_now timestamptz)
returns numeric[]
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select
      case
        when gates.closed_until > p_now then null
        else gates.amount - (
          select coalesce(sum(gate_uses.amount), 0)
          from treadle.gate_uses
          where
            gate_uses.key = gates.key
            and gate_uses.slot >= treadle.gate_slot(p_now, gates.period_s) - 60
        )
      end
    from unnest(p_keys) with ordinality as given (key, at)
    inner join treadle.gates on given.key = gates.key
    order by given.at
  )
$$;

comment on function treadle.gate_room(text[], timestamptz) is
'Internal: what limits by rate still let through, in the order of the keys.';

revoke all on function treadle.gate_room(text[], timestamptz) from public;
