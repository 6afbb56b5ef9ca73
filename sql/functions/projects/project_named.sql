-- project_named: the id of the project with this name.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR208 unknown project.

create or replace function treadle.project_named(p_name text)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id uuid;
begin
  select projects.id into v_id from treadle.projects where projects.name = p_name;
  if not found then
    perform treadle.refuse(
      format('there is no project %s', coalesce(quote_literal(left(p_name, 60)), 'null')),
      jsonb_build_object('argument', 'project', 'project', left(p_name, 200)),
      'Make one: select treadle.define_project(''name'')',
      'TR208'
    );
  end if;
  return v_id;
end;
$$;

comment on function treadle.project_named(text) is
'Internal: the id of the project with this name.';

revoke all on function treadle.project_named(text) from public;
