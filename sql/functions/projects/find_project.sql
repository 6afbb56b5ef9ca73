-- find_project: find a project by its name or its id.

-- find_project_by_name: return the id of the project with this name.
--
-- Raises:      TR208 unknown project.
create or replace function treadle.find_project_by_name(p_name text)
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
    perform treadle.raise_error(
      format('there is no project %s', coalesce(quote_literal(left(p_name, 60)), 'null')),
      jsonb_build_object('argument', 'project', 'project', left(p_name, 200)),
      'To create one: select treadle.define_project(''name'')',
      'TR208'
    );
  end if;
  return v_id;
end;
$$;

-- find_project_by_id: return the project with this id.
--
-- Raises:      TR208 unknown project.
create or replace function treadle.find_project_by_id(p_id uuid)
returns treadle.projects
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_project treadle.projects;
begin
  select projects.* into v_project from treadle.projects where projects.id = p_id;
  if not found then
    perform treadle.raise_error(
      format('there is no project %s', coalesce(p_id::text, 'null')),
      jsonb_build_object('argument', 'project_id', 'project_id', p_id),
      'To list projects: GET /projects, or select * from treadle.project_list',
      'TR208'
    );
  end if;
  return v_project;
end;
$$;
