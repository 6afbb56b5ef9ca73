-- create_project: a new project; one that is called like another gets a number in its name.
--
-- select treadle.create_project('Shopping List API', 'todoist:123');
--
-- It is for the work API, which tells projects apart by their ids. define_project does by the name.
--
-- Concurrency: two sessions with the same name: the second waits for the first.
-- Lock order:  projects.
-- Raises:      TR001 invalid argument.

-- numbered_name: the name of a project that is called like another: with the end of its id.
create or replace function treadle.numbered_name(p_name text, p_id uuid)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select p_name || ' #' || right(p_id::text, 8)
$$;

-- check_project: refuse a name or a reference that no project can have.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_project(p_name text, p_external_ref text)
returns void
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not coalesce(octet_length(p_name) <= 200 and p_name ~ '\S', false) then
    perform treadle.refuse(
      'the name of a project must have 1 to 200 bytes', jsonb_build_object('argument', 'name')
    );
  elsif octet_length(p_external_ref) > 1000 then
    perform treadle.refuse(
      'external_ref must have at most 1000 bytes', jsonb_build_object('argument', 'external_ref')
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
  perform treadle.keep_durable();
  insert into treadle.projects (id, name, external_ref, created_at, updated_at)
  values (v_id, p_name, p_external_ref, v_now, v_now)
  on conflict (name) do nothing;
  if not found then
    insert into treadle.projects (id, name, label, external_ref, created_at, updated_at)
    values (v_id, treadle.numbered_name(p_name, v_id), p_name, p_external_ref, v_now, v_now);
  end if;
  return v_id;
end;
$$;

comment on function treadle.create_project(text, text) is
'Make a project; its id.';

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

grant execute on function treadle.create_project(text, text) to
treadle_producer, treadle_operator;
grant execute on function treadle.change_project(uuid, jsonb) to
treadle_producer, treadle_operator;
