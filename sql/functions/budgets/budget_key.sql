-- budget_key: the key that a budget is stored under; an error when there is no such thing.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR203 unknown type, TR204 unknown agent, TR205 unknown DAG,
--              TR208 unknown project.

create or replace function treadle.budget_key(p_scope text, p_key text)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_uuid constant text := '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
  v_uuid uuid := case when p_key ~ c_uuid then p_key::uuid end;
  v_key  text;
begin
  if p_scope is null or p_scope not in ('agent', 'dag', 'project', 'type', 'all') then
    perform treadle.refuse(
      format('scope cannot be %s', coalesce(quote_literal(left(p_scope, 60)), 'null')),
      jsonb_build_object('argument', 'scope'), 'Use agent, dag, project, type or all.'
    );
  elsif p_scope = 'all' and coalesce(p_key, '') <> '' then
    perform treadle.refuse(
      format('the budget of all has no key, not %L', left(p_key, 60)),
      jsonb_build_object('argument', 'key'), 'Leave the key empty.'
    );
  end if;

  v_key := case p_scope
    when 'all' then ''
    when 'agent' then (select agents.id from treadle.agents where agents.id = p_key)
    when 'dag' then (select dags.id::text from treadle.dags where dags.id = v_uuid)
    when 'type' then (select task_types.name from treadle.task_types where task_types.name = p_key)
    else (
      select projects.id::text
      from treadle.projects
      where projects.id = v_uuid or projects.name = p_key
      order by projects.id = v_uuid desc nulls last
      limit 1
    )
  end;
  if v_key is null then
    perform treadle.refuse(
      format('there is no %s %s', p_scope, coalesce(quote_literal(left(p_key, 60)), 'null')),
      jsonb_build_object('argument', 'key', 'scope', p_scope, 'key', left(p_key, 200)),
      'A budget needs what it is for: make that first.',
      case p_scope
        when 'agent' then 'TR204' when 'dag' then 'TR205' when 'type' then 'TR203' else 'TR208'
      end
    );
  end if;
  return v_key;
end;
$$;

comment on function treadle.budget_key(text, text) is
'Internal: the agent, DAG, project or type that a key means.';

revoke all on function treadle.budget_key(text, text) from public;
