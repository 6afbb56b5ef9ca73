-- why_nobody: what the live agents lack for a lane that none of them may take from.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_nobody(p_lane treadle.lanes, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_known   text[];
  v_serve   integer;
  v_handle  integer;
  v_missing text[];
begin
  select
    array_agg(capability.name) filter (where fits.handles and capability.name is not null),
    count(distinct agents.id) filter (where fits.serves),
    count(distinct agents.id) filter (where fits.handles)
  into v_known, v_serve, v_handle
  from treadle.agents
  left join lateral unnest(agents.capabilities) as capability (name) on true
  cross join lateral (
    select
      p_lane.queue = any (agents.queues) as serves,
      p_lane.queue = any (agents.queues)
      and (agents.task_types is null or p_lane.type = any (agents.task_types)) as handles
  ) as fits
  where treadle.is_live(agents, p_now);

  detail := jsonb_build_object('queue', p_lane.queue, 'type', p_lane.type);
  if v_serve = 0 then
    reason := 'no_agent';
    sentence := 'no live agent serves queue ' || p_lane.queue;
  elsif v_handle = 0 then
    reason := 'no_handler';
    sentence := 'no live agent of the queue handles type ' || p_lane.type;
  else
    v_missing := array(
      select needed.name from unnest(p_lane.capabilities) as needed (name)
      where needed.name <> all (coalesce(v_known, '{}'))
    );
    reason := 'no_capability';
    sentence := format(
      'no live agent of the queue has %s %s',
      case cardinality(v_missing)
        when 0 then 'all of' when 1 then 'capability' else 'capabilities'
      end,
      array_to_string(coalesce(nullif(v_missing, '{}'), p_lane.capabilities), ', ')
    );
    detail := detail || jsonb_build_object(
      'capabilities', p_lane.capabilities, 'missing', v_missing
    );
  end if;
  return next;
end;
$$;

comment on function treadle.why_nobody(treadle.lanes, timestamptz) is
'Internal: that no live agent has the queue, the type or the capabilities of a lane.';

revoke all on function treadle.why_nobody(treadle.lanes, timestamptz) from public;
