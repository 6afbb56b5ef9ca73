-- define_project: create a project or change its settings.
--
-- select treadle.define_project('website', '{"share": 3}');
--
-- Settings that are not given stay as they are. Returns its id and whether it is new.
--
-- Lock order:  projects.
-- Raises:      TR001 invalid argument.

create or replace function treadle.define_project(
  p_name       text,
  p_settings   jsonb default '{}',
  out id       uuid,
  out created  boolean
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_old        treadle.projects;
  v_new        treadle.projects;
  v_constraint text;
  v_column     text;
begin
  perform treadle.check_settings(p_settings, array['share', 'external_ref']);
  insert into treadle.projects (name) values (p_name) on conflict (name) do nothing;
  created := found;
  select projects.* into v_old from treadle.projects where projects.name = p_name
  for no key update;
  v_new := jsonb_populate_record(v_old, p_settings);

  update treadle.projects
  set
    share = v_new.share,
    external_ref = v_new.external_ref,
    updated_at = clock_timestamp()
  where projects.id = v_old.id and v_new is distinct from v_old;
  id := v_old.id;
exception
  when check_violation or not_null_violation or data_exception then
    get stacked diagnostics v_constraint = constraint_name, v_column = column_name;
    perform treadle.raise_error(
      format(
        'project %s cannot be defined: %s', left(quote_nullable(p_name), 60),
        treadle.constraint_message(sqlerrm, v_constraint, v_column)
      ),
      jsonb_build_object('argument', 'project'),
      'A name has 1 to 200 characters; a share is above 0 and at most 1000000.'
    );
end;
$$;

comment on function treadle.define_project(text, jsonb) is
'Create or change a project: its share in fair queues and its external reference.';

grant execute on function treadle.define_project(text, jsonb) to treadle_operator;
