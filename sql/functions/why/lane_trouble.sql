-- lane_trouble: what keeps a lane from moving that somebody should look at; null when all is well.
--
-- Agents that are busy and limits by rate are daily life, and so are a gate that opens soon and
-- work items that wait for people.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.lane_trouble(p_lane_id integer)
returns text
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now  timestamptz := treadle.clock();
  v_lane treadle.lanes;
  v_said text;
begin
  select lanes.* into v_lane from treadle.lanes where lanes.id = p_lane_id;
  select found.sentence
  into v_said
  from treadle.why_lane(v_lane, v_now) as found
  where
    found.reason not in ('agents_full', 'gate_rate', 'gate_closed', 'work')
    or (found.reason = 'gate_closed' and found.until > v_now + interval '5 minutes')
  limit 1;
  if not found then
    -- Behind such a gate is what needs more than a limit lets through at all.
    select gates.reason
    into v_said
    from treadle.gates
    where gates.key = any (v_lane.gates) and gates.key like 'over:%' and gates.closed_until > v_now
    limit 1;
  end if;
  return v_said;
end;
$$;

comment on function treadle.lane_trouble(integer) is
'The first thing that keeps a lane shut and will not pass by itself soon.';

revoke all on function treadle.lane_trouble(integer) from public;
grant execute on function treadle.lane_trouble(integer) to treadle_observer, treadle_operator;
