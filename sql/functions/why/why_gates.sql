-- why_gates: gates before a lane that are closed.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_gates(p_lane treadle.lanes, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case
      when treadle.is_full(gates) then format(
        'gate %s lets through %s %s in %s; next room at %s', gates.key,
        trim_scale(gates.amount), gates.unit,
        treadle.span_words(make_interval(secs => gates.period_s)),
        treadle.utc_words(gates.closed_until)
      )
      else format(
        'gate %s is closed until %s%s', gates.key, treadle.utc_words(gates.closed_until),
        coalesce(': ' || treadle.last_line(gates.reason), '')
      )
    end,
    case when treadle.is_full(gates) then 'gate_rate' else 'gate_closed' end,
    gates.closed_until,
    jsonb_strip_nulls(
      jsonb_build_object(
        'gate', gates.key, 'closed_until', treadle.stamp(gates.closed_until),
        'closed_at', treadle.stamp(gates.closed_at), 'closed_by', gates.closed_by,
        'said', gates.reason, 'slowdowns', gates.slowdowns, 'unit', gates.unit,
        'amount', gates.amount, 'period_s', gates.period_s
      )
    )
  from treadle.gates
  where
    gates.key = any (p_lane.gates)
    and gates.closed_until > p_now
    -- Behind such a gate is what needs more than a limit lets through at all, see why_rates.
    and gates.key not like 'over:%'
  order by gates.closed_until desc, gates.key
$$;

comment on function treadle.why_gates(treadle.lanes, timestamptz) is
'Internal: which gates keep a lane shut, and until when.';

revoke all on function treadle.why_gates(treadle.lanes, timestamptz) from public;
