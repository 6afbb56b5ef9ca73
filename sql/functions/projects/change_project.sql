-- change_project: another name or external_ref for a project; what is not named stays as it is.
--
-- select treadle.change_project(id, '{"name": "Shopping List"}');
--
-- Concurrency: one row.
-- Lock order:  projects.
-- Raises:      TR001 invalid argument, TR108 another project has the name, TR208 unknown project.

create or replace function treadle.change_project(p_id uuid, p_changes jsonb)
returns void
language plpgsql
volatile
security definer
set search_path = ''
as $$
declare
  v_old  treadle.projects := treadle.project_of(p_id);
  v_name text := p_changes ->> 'name';
  v_ref  text := p_changes ->> 'external_ref';
begin
  perform treadle.check_settings(p_changes, array['name', 'external_ref']);
  perform treadle.check_project(
    case when p_changes ? 'name' then v_name else v_old.name end, v_ref
  );
  perform treadle.keep_durable();
  update treadle.projects
  set
    name = case when p_changes ? 'name' then v_name else projects.name end,
    external_ref = case when p_changes ? 'external_ref' then v_ref else projects.external_ref end,
    updated_at = treadle.clock()
  where
    projects.id = p_id
    and (
      (p_changes ? 'name' and projects.name <> v_name)
      or (p_changes ? 'external_ref' and projects.external_ref is distinct from v_ref)
    );
exception
  when unique_violation then
    perform treadle.refuse(
      format('another project has the name %s', quote_literal(v_name)),
      jsonb_build_object('argument', 'name'),
      'Take another name.',
      'TR108'
    );
end;
$$;

comment on function treadle.change_project(uuid, jsonb) is
'Change the name of a project, or what it is called elsewhere.';

revoke all on function treadle.change_project(uuid, jsonb) from public;
grant execute on function treadle.change_project(uuid, jsonb) to
treadle_producer, treadle_operator;
