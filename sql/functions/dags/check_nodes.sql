-- check_nodes: refuse tasks of a DAG that are not objects, or whose names are wrong or repeated.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_nodes(p_tasks jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_uuid constant text := '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
  v_wrong record;
begin
  if jsonb_typeof(p_tasks) is distinct from 'array' or p_tasks = '[]' or jsonb_path_exists(
    p_tasks, '$[*] ? (@.type() != "object")'
  ) then
    perform treadle.refuse(
      'the tasks must be a json array of at least one object',
      jsonb_build_object('argument', 'tasks'),
      'For example [{"name": "a", "type": "code"}, {"name": "b", "type": "test", "after": ["a"]}].'
    );
  end if;

  select given.at - 1 as at, given.name, given.problem
  into v_wrong
  from (
    select
      nodes.at,
      nodes.task ->> 'name' as name,
      case
        when nodes.task ?| array['hold', 'dedupe', 'idempotency_key', 'dag_id', 'parent_id']
          then 'hold, dedupe, idempotency_key, dag_id and parent_id do not go into a DAG'
        when jsonb_typeof(nodes.task -> 'name') not in ('string', 'null')
          then 'a name must be text'
        when not nodes.task ->> 'name' ~ '^[^:[:cntrl:]]{1,100}$' or nodes.task ->> 'name' ~ c_uuid
          then 'a name has 1 to 100 characters, no colon, and is no uuid'
        when
          nodes.task ->> 'name' is not null
          and count(*) over (partition by nodes.task ->> 'name') > 1
          then 'the name is there twice'
        when jsonb_typeof(nodes.task -> 'after') not in ('array', 'null')
          then 'after must be an array of names or ids'
        when jsonb_typeof(nodes.task -> 'inputs') not in ('object', 'null')
          then 'inputs must be an object: {"parameter": "task:<name>:output"}'
      end as problem
    from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
  ) as given
  where given.problem is not null
  order by given.at
  limit 1;

  if found then
    perform treadle.refuse(
      format('task %s of the DAG: %s', coalesce(v_wrong.name, '#' || v_wrong.at), v_wrong.problem),
      jsonb_build_object('argument', 'tasks', 'index', v_wrong.at, 'name', v_wrong.name),
      'Correct it and send the whole again: nothing was stored.'
    );
  end if;
end;
$$;

comment on function treadle.check_nodes(jsonb) is
'Internal: refuses a malformed list of tasks for a DAG.';

revoke all on function treadle.check_nodes(jsonb) from public;
