-- create_project: create a project; a project with the name of another one gets a number in its
-- name.
--
-- select treadle.create_project('Shopping List API', 'todoist:123');
--
-- For the work API, which identifies projects by id. define_project identifies them by name.
--
-- Concurrency: of two sessions with the same name, the second waits for the first.
-- Lock order:  projects.
-- Raises:      TR001 invalid argument.

-- unique_project_name: return a unique name for a project with the name of another: with the end of
-- its id.
create or replace function treadle.unique_project_name(p_name text, p_id uuid)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select p_name || ' #' || right(p_id::text, 8)
$$;

-- check_project: check the name and the external reference of a project.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_project(p_name text, p_external_ref text)
returns void
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not coalesce(char_length(p_name) <= 200 and p_name ~ '\S', false) then
    perform treadle.raise_error(
      'the name of a project must have 1 to 200 characters',
      jsonb_build_object('argument', 'name')
    );
  elsif char_length(p_external_ref) > 1000 then
    perform treadle.raise_error(
      'external_ref must have at most 1000 characters',
      jsonb_build_object('argument', 'external_ref')
    );
  end if;
end;
$$;

create or replace function treadle.create_project(p_name text, p_external_ref text default null)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id  uuid := treadle.uuidv7();
  v_now timestamptz := treadle.clock();
begin
  perform treadle.check_project(p_name, p_external_ref);
  perform treadle.ensure_durable();
  insert into treadle.projects (id, name, external_ref, created_at, updated_at)
  values (v_id, p_name, p_external_ref, v_now, v_now)
  on conflict (name) do nothing;
  if not found then
    insert into treadle.projects (id, name, label, external_ref, created_at, updated_at)
    values (v_id, treadle.unique_project_name(p_name, v_id), p_name, p_external_ref, v_now, v_now);
  end if;
  return v_id;
end;
$$;

comment on function treadle.create_project(text, text) is
'Create a project; returns its id.';

-- update_project: change the name or external_ref of a project; fields that are not given stay as
-- they are.
--
-- select treadle.update_project(id, '{"name": "Shopping List"}');
--
-- If the new name belongs to another project, a number is added to it; see create_project.
--
-- Concurrency: one row, locked before it is read; waits for a session that takes the same name.
-- Lock order:  projects.
-- Raises:      TR001 invalid argument, TR208 unknown project.
create or replace function treadle.update_project(p_id uuid, p_changes jsonb)
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
  v_old := treadle.find_project_by_id(p_id);
  v_shown := coalesce(v_old.label, v_old.name);
  v_name := case when p_changes ? 'name' then p_changes ->> 'name' else v_shown end;
  v_ref := case
    when p_changes ? 'external_ref' then p_changes ->> 'external_ref' else v_old.external_ref
  end;
  perform treadle.check_project(v_name, v_ref);
  perform treadle.ensure_durable();
  if v_name <> v_shown then
    begin
      update treadle.projects set name = v_name, label = null where projects.id = p_id;
    exception
      when unique_violation then
        update treadle.projects
        set name = treadle.unique_project_name(v_name, p_id), label = v_name
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

comment on function treadle.update_project(uuid, jsonb) is
'Change the name or the external reference of a project.';

grant execute on function treadle.create_project(text, text) to
treadle_producer, treadle_operator;
grant execute on function treadle.update_project(uuid, jsonb) to
treadle_producer, treadle_operator;
