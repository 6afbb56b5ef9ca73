-- check_trigger: check the settings of a trigger; its template is checked separately.
--
-- Raises:      TR001 invalid argument, TR203 unknown type.

-- rate_problem: return what is wrong with a failure rate; null if it is valid.
create or replace function treadle.rate_problem(p_rate jsonb)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when jsonb_typeof(p_rate) <> 'object' then 'failure_rate must be a JSON object'
    when p_rate - array['type', 'window_s', 'limit', 'min_attempts'] <> '{}'
      then 'failure_rate accepts only type, window_s, limit and min_attempts'
    when jsonb_typeof(p_rate -> 'type') is distinct from 'string'
      then 'failure_rate needs a task type'
    when not jsonb_path_exists(p_rate, '$ ? (@.window_s >= 60 && @.window_s <= 2592000)')
      then 'window_s must be 60 seconds to 30 days'
    when not jsonb_path_exists(p_rate, '$ ? (@.limit >= 0 && @.limit < 1)')
      then 'limit must be a share of the attempts: 0 or more, and below 1'
    when
      p_rate ? 'min_attempts'
      and not jsonb_path_exists(p_rate, '$ ? (@.min_attempts >= 1 && @.min_attempts <= 1000000)')
      then 'min_attempts must be 1 to 1000000'
  end
$$;

-- placeholder_problem: return what is wrong with the placeholders of a template.
create or replace function treadle.placeholder_problem(p_template jsonb)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select
    case
      when
        jsonb_typeof(found.place -> '$event') <> 'string'
        or found.place - array['$event', 'default'] <> '{}'
        then 'a placeholder accepts only "$event" and "default"'
      when not found.place ->> '$event' ~ '^[^.]+([.][^.]+)*$'
        then '"$event" must be names joined by dots, such as data.url'
      else
        'an event has no '
        || quote_literal(treadle.excerpt_name(split_part(found.place ->> '$event', '.', 1)))
    end
  from jsonb_path_query(p_template, 'strict $.** ? (@.type() == "object")') as found (place)
  where
    found.place ? '$event' and (
      jsonb_typeof(found.place -> '$event') <> 'string'
      or found.place - array['$event', 'default'] <> '{}'
      or not found.place ->> '$event' ~ '^[^.]+([.][^.]+)*$'
      or split_part(found.place ->> '$event', '.', 1) <> all (treadle.event_fields())
    )
  limit 1
$$;

-- check_event_filter: reject a filter with fields that no event has, since it would never match.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_event_filter(p_filter jsonb, p_known text[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other text;
begin
  select keys.name
  into v_other
  from jsonb_object_keys(p_filter) as keys (name)
  where keys.name <> all (p_known)
  limit 1;
  if found then
    perform treadle.raise_error(
      format(
        'this filter never matches: no event has %s',
        quote_literal(treadle.excerpt_name(v_other))
      ),
      jsonb_build_object('argument', 'filter', 'key', treadle.excerpt_name(v_other)),
      format('Fields: %s.', array_to_string(p_known, ', '))
    );
  end if;
end;
$$;

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
      then 'its name must be 1 to 100 bytes without spaces'
    when p_trigger.template is null or (p_trigger.template ? 'task') = (p_trigger.template ? 'dag')
      then 'it needs either a task or a dag'
    when not coalesce(octet_length(p_trigger.on_event) between 1 and 200, false)
      then 'it needs an event kind: on'
    -- A trigger that fires on its own events would never stop.
    when p_trigger.on_event like 'trigger.%' then 'triggers cannot fire on events of triggers'
    when jsonb_typeof(p_trigger.filter) <> 'object' then 'its filter must be a JSON object'
    when not coalesce(p_trigger.max_depth between 1 and 100, false)
      then 'max_depth must be 1 to 100'
    when not p_trigger.max_per_hour between 1 and 1000000
      then 'max_per_hour must be 1 to 1000000, or null for no limit'
    when octet_length(p_trigger.description) > 1000
      then 'its description must be at most 1000 bytes long'
    when v_rate is not null then treadle.rate_problem(v_rate)
  end;
  if v_problem is not null then
    perform treadle.raise_error(
      'this trigger cannot be defined: ' || v_problem,
      jsonb_build_object('argument', 'settings'),
      'For example {"on": "dag.completed", "filter": {"data": {"name": "crawl"}}, '
      || '"task": {"type": "code"}}.'
    );
  end if;
  perform treadle.check_kinds(array[p_trigger.on_event], false, 'on');
  perform treadle.check_document('filter', p_trigger.filter, 16384);
  perform treadle.check_event_filter(p_trigger.filter, treadle.event_fields());
  perform treadle.check_document('template', p_trigger.template);
  perform treadle.check_names(queues.name, v_rate ->> 'type')
  from treadle.queues
  where v_rate is not null
  limit 1;
end;
$$;

-- check_template: reject a template that could never be enqueued, or in which an event sets the
-- rules.
--
-- The template fixes what runs, where, and under which rules; an event only provides values. As a
-- dry run, the template is enqueued with sample values and rolled back.
--
-- Concurrency: the dry run may create a lane, which is rolled back too.
-- Lock order:  tasks, lanes, dags.
-- Raises:      TR001 invalid argument, and what enqueue_tasks and create_dag raise.
create or replace function treadle.check_template(p_trigger treadle.triggers)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_free constant text[] := array[
    'spec', 'title', 'tags', 'idempotency_key', 'external_ref', 'notes', 'priority', 'project',
    'project_id', 'run_at', 'delay_s', 'deadline_at', 'concurrency_key'
  ];
  v_template jsonb := p_trigger.template;
  v_what     jsonb := coalesce(v_template -> 'task', v_template -> 'dag');
  v_fixed    jsonb;
  v_sample   jsonb;
  v_problem  text := treadle.placeholder_problem(v_template);
begin
  if jsonb_typeof(v_what) is distinct from 'object' then
    v_problem := 'it must be one object, task or dag';
  elsif v_template ? 'task' then
    v_fixed := v_what - c_free;
  elsif jsonb_typeof(v_what -> 'tasks') is distinct from 'array' or jsonb_path_exists(
    v_what, '$.tasks[*] ? (@.type() != "object")'
  ) then
    v_problem := 'a dag needs tasks, an array of objects';
  else
    v_fixed := (v_what - array['name', 'key', 'meta', 'tasks']) || jsonb_build_object(
      'tasks',
      (
        select jsonb_agg(node.task - c_free)
        from jsonb_array_elements(v_what -> 'tasks') as node (task)
      )
    );
  end if;
  if v_problem is null and jsonb_path_exists(v_fixed, '$.**."$event"') then
    v_problem := 'an event may set only ' || array_to_string(c_free, ', ') || '';
  end if;
  if v_problem is not null then
    perform treadle.raise_error(
      'this template cannot be used: ' || v_problem,
      jsonb_build_object('argument', 'template'),
      'For example {"task": {"type": "code", "spec": {"url": {"$event": "data.url"}}}}.'
    );
  end if;

  begin
    v_sample := treadle.fill_template(v_template, null);
    if v_sample #> '{dag,name}' = 'null' then
      v_sample := jsonb_set(v_sample, '{dag,name}', '"sample"');
    end if;
    perform treadle.enqueue_filled_template(p_trigger, v_sample);
    raise exception using errcode = 'TRDRY';
  exception
    -- The dry run succeeded, or only the queue was full: everything is rolled back.
    when sqlstate 'TRDRY' or sqlstate 'TR105' then null;
  end;
end;
$$;
