-- check_template: refuse a template that could never be enqueued, or that lets events decide.
--
-- What runs, where and under which rules is written in the template; an event gives values only. It
-- is enqueued with a sample in place of them, and that is undone.
--
-- Concurrency: part of it may make a lane, which is undone too.
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
    v_problem := 'a dag needs tasks: an array of objects';
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
    v_problem := 'an event may give ' || array_to_string(c_free, ', ') || ', and nothing else';
  end if;
  if v_problem is not null then
    perform treadle.refuse(
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
    perform treadle.make_from(p_trigger, v_sample);
    raise exception using errcode = 'TRDRY';
  exception
    -- It went well, or would have if there were room in the queue: nothing of it stays.
    when sqlstate 'TRDRY' or sqlstate 'TR105' then null;
  end;
end;
$$;

comment on function treadle.check_template(treadle.triggers) is
'Internal: refuses the template of a trigger that does not work.';

revoke all on function treadle.check_template(treadle.triggers) from public;
