-- project_of: the project with this id.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR208 unknown project.

create or replace function treadle.project_of(p_id uuid)
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
    perform treadle.refuse(
      format('there is no project %s', coalesce(p_id::text, 'null')),
      jsonb_build_object('argument', 'project_id', 'project_id', p_id),
      'List them: GET /projects, or select * from treadle.project_list',
      'TR208'
    );
  end if;
  return v_project;
end;
$$;

comment on function treadle.project_of(uuid) is 'Internal: the project with this id.';

revoke all on function treadle.project_of(uuid) from public;
