-- change_project: another name or external_ref for a project; what is not named stays as it is.
--
-- select treadle.change_project(id, '{"name": "Shopping List"}');
--
-- One that is then called like another gets a number in its name, see create_project.
--
-- Concurrency: one row, locked and then read; whoever takes the name at the same moment is waited
--              for.
-- Lock order:  projects.
-- Raises:      TR001 invalid argument, TR208 unknown project.

create or replace function treadle.change_project(p_id uuid, p_changes jsonb)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_old   treadle.projects;
  v_shown text;
  v_name  text;
  v_ref   text;
begin
  perform treadle.check_settings(p_changes, array['name', 'external_ref']);
  perform from treadle.projects where projects.id = p_id for no key update;
  v_old := treadle.project_of(p_id);
  v_shown := coalesce(v_old.label, v_old.name);
  v_name := case when p_changes ? 'name' then p_changes ->> 'name' else v_shown end;
  v_ref := case
    when p_changes ? 'external_ref' then p_changes ->> 'external_ref' else v_old.external_ref
  end;
  perform treadle.check_project(v_name, v_ref);
  perform treadle.keep_durable();
  if v_name <> v_shown then
    begin
      update treadle.projects set name = v_name, label = null where projects.id = p_id;
    exception
      when unique_violation then
        update treadle.projects
        set name = treadle.numbered_name(v_name, p_id), label = v_name
        where projects.id = p_id;
    end;
  end if;
  update treadle.projects
  set external_ref = v_ref, updated_at = treadle.clock()
  where
    projects.id = p_id
    and (v_name <> v_shown or projects.external_ref is distinct from v_ref);
end;
$$;

comment on function treadle.change_project(uuid, jsonb) is
'Change the name of a project, or what it is called elsewhere.';

revoke all on function treadle.change_project(uuid, jsonb) from public;
grant execute on function treadle.change_project(uuid, jsonb) to
treadle_producer, treadle_operator;
