-- create_project: a new project; asked for again in the same words, it is the one from before.
--
-- select * from treadle.create_project('Shopping List API', 'todoist:123');
--
-- Concurrency: two sessions with the same name: the second waits for the first.
-- Lock order:  projects.
-- Raises:      TR001 invalid argument, TR108 another project has the name.

create or replace function treadle.create_project(
  p_name          text,
  p_external_ref  text default null,
  out id uuid,
  out created boolean
)
language plpgsql
volatile
security definer
set search_path = ''
as $$
#variable_conflict use_column
declare
  v_other treadle.projects;
  v_now   timestamptz := treadle.clock();
begin
  perform treadle.check_project(p_name, p_external_ref);
  perform treadle.keep_durable();
  loop
    insert into treadle.projects (name, external_ref, created_at, updated_at)
    values (p_name, p_external_ref, v_now, v_now)
    on conflict (name) do nothing
    returning projects.id into id;
    created := id is not null;
    if created then
      return;
    end if;
    select projects.* into v_other from treadle.projects where projects.name = p_name;
    -- The one in the way may have got another name since: try again.
    exit when found;
  end loop;

  if v_other.external_ref is distinct from p_external_ref then
    perform treadle.refuse(
      format('there is a project %s already, with another external_ref', quote_literal(p_name)),
      jsonb_build_object('argument', 'name', 'project_id', v_other.id),
      'Change that one, or take another name.',
      'TR108'
    );
  end if;
  id := v_other.id;
end;
$$;

comment on function treadle.create_project(text, text) is
'Make a project; its id, and whether it is new.';

revoke all on function treadle.create_project(text, text) from public;
grant execute on function treadle.create_project(text, text) to
treadle_producer, treadle_operator;
