-- check_trigger: refuse a trigger that makes no sense; its template is checked apart.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR203 unknown type.

create or replace function treadle.check_trigger(p_trigger treadle.triggers)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rate    jsonb := p_trigger.failure_rate;
  v_problem text;
begin
  v_problem := case
    when not coalesce(p_trigger.name ~ '^[^[:cntrl:][:space:]]+$', false)
      or octet_length(p_trigger.name) > 100
      then 'its name must have 1 to 100 bytes, and no blanks'
    when p_trigger.template is null or (p_trigger.template ? 'task') = (p_trigger.template ? 'dag')
      then 'it needs a task or a dag to make, and not both'
    when not coalesce(octet_length(p_trigger.on_event) between 1 and 200, false)
      then 'it needs the kind of the event: on'
    -- One that fires because it fired would never end.
    when p_trigger.on_event like 'trigger.%' then 'no trigger follows from another one''s events'
    when jsonb_typeof(p_trigger.filter) <> 'object' then 'its filter must be a json object'
    when not coalesce(p_trigger.max_depth between 1 and 100, false)
      then 'max_depth must be 1 to 100'
    when not p_trigger.max_per_hour between 1 and 1000000
      then 'max_per_hour must be 1 to 1000000, or null for no limit'
    when octet_length(p_trigger.description) > 1000
      then 'its description must have at most 1000 bytes'
    when v_rate is not null then treadle.rate_problem(v_rate)
  end;
  if v_problem is not null then
    perform treadle.refuse(
      'this trigger cannot be made: ' || v_problem,
      jsonb_build_object('argument', 'settings'),
      'For example {"on": "dag.completed", "filter": {"data": {"name": "crawl"}}, '
      || '"task": {"type": "code"}}.'
    );
  end if;
  perform treadle.check_kinds(array[p_trigger.on_event], false, 'on');
  perform treadle.check_document('filter', p_trigger.filter, 16384);
  perform treadle.check_event_filter(p_trigger.filter, treadle.event_places());
  perform treadle.check_document('template', p_trigger.template);
  perform treadle.check_names(queues.name, v_rate ->> 'type')
  from treadle.queues
  where v_rate is not null
  limit 1;
end;
$$;

comment on function treadle.check_trigger(treadle.triggers) is
'Internal: refuses a trigger with settings that cannot be.';

revoke all on function treadle.check_trigger(treadle.triggers) from public;
