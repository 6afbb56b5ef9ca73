-- why_rates: limits by rate that have no room for a task now, or never will.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_rates(
  p_task  treadle.tasks,
  p_lane  treadle.lanes,
  p_now   timestamptz
)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case
      when wanted.need > gates.amount then format(
        'needs %s %s, gate %s allows %s in %s', trim_scale(wanted.need), gates.unit, gates.key,
        trim_scale(gates.amount), period.words
      )
      else format(
        'gate %s lets through %s %s in %s; next room at %s', gates.key,
        trim_scale(gates.amount), gates.unit, period.words, treadle.utc_words(period.next)
      )
    end,
    case when wanted.need > gates.amount then 'gate_size' else 'gate_rate' end,
    case when wanted.need <= gates.amount then period.next end,
    jsonb_build_object(
      'gate', gates.key, 'unit', gates.unit, 'amount', gates.amount, 'period_s', gates.period_s,
      'left', wanted.room, 'needs', wanted.need
    )
  from treadle.gates
  cross join lateral (
    select
      treadle.gate_need(p_task, gates.unit) as need,
      coalesce((treadle.gate_room(array[gates.key], p_now))[1], 0) as room
  ) as wanted
  cross join lateral (
    select
      treadle.span_words(make_interval(secs => gates.period_s)) as words,
      treadle.room_at(gates.key, wanted.need, 0, p_now) as next
  ) as period
  where
    gates.key = any (p_lane.gates)
    and gates.unit is not null
    and (
      wanted.need > gates.amount
      -- One that is closed is told by why_gates.
      or (
        coalesce(gates.closed_until <= p_now, true)
        and (wanted.room <= 0 or wanted.room < wanted.need)
      )
    )
  order by gates.key
$$;

comment on function treadle.why_rates(treadle.tasks, treadle.lanes, timestamptz) is
'Internal: which limits by rate keep a task back, and when they have room for it.';

revoke all on function treadle.why_rates(treadle.tasks, treadle.lanes, timestamptz) from public;
