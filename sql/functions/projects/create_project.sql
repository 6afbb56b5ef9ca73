-- create_project: a new project; one that is called like another gets a number in its name.
--
-- select treadle.create_project('Shopping List API', 'todoist:123');
--
-- It is for the work API, which tells projects apart by their ids. define_project does by the name.
--
-- Concurrency: two sessions with the same name: the second waits for the first.
-- Lock order:  projects.
-- Raises:      TR001 invalid argument.

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

revoke all on function treadle.create_project(text, text) from public;
grant execute on function treadle.create_project(text, text) to
treadle_producer, treadle_operator;
