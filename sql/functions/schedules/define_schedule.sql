-- define_schedule: make a schedule, or change one; what is not named stays as it is.
--
-- select treadle.define_schedule('nightly', '{
--   "cron": "30 2 * * *", "timezone": "Europe/Berlin",
--   "task": {"type": "report", "queue": "default", "spec": {"day": "{{nominal_date}}"}},
--   "jitter_s": 60, "catch_up": "one", "overlap": "skip", "grace_s": 60
-- }');
--
-- Instead of a task it can have a "dag", as create_dag takes it. The cron line is read by the
-- scheduler: one that makes no sense shows in last_error. Another cron line or zone counts from now
-- on; other changes leave the next time as it is. Returns created, changed or unchanged.
--
-- Concurrency: one row, waited for; a scheduler that has it due sees the change or comes first.
-- Lock order:  schedules; as enqueue_batch or create_dag for the trial.
-- Raises:      TR001 invalid argument, and what the trial of its work raises.

create or replace function treadle.define_schedule(
  p_name      text,
  p_settings  jsonb,
  p_actor     text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  c_settings constant text[] := array[
    'task', 'dag', 'cron', 'timezone', 'jitter_s', 'catch_up', 'overlap', 'grace_s'
  ];
  v_cron       text;
  v_old        treadle.schedules;
  v_new        treadle.schedules;
  v_made       boolean;
  v_constraint text;
  v_column     text;
begin
  perform treadle.check_settings(p_settings, c_settings);
  if p_settings ?& array['task', 'dag'] then
    perform treadle.refuse(
      'a schedule makes a task or a DAG, not both', jsonb_build_object('argument', 'dag'),
      'Leave one of them out.'
    );
  end if;
  v_cron := btrim(regexp_replace(p_settings ->> 'cron', '\s+', ' ', 'g'));
  -- A word in any case, as everywhere else that reads it; names of days are left as they are.
  v_cron := case when starts_with(v_cron, '@') then lower(v_cron) else v_cron end;
  insert into treadle.schedules (name, cron, template, from_at, created_by)
  -- The trial refuses a template of nothing, in better words than the constraint.
  select
    p_name, v_cron, coalesce(nullif(p_settings - c_settings[3:], '{}'), '{"task": null}'),
    treadle.clock(), coalesce(p_actor, session_user)
  where not exists (select from treadle.schedules where schedules.name = p_name)
  on conflict (name) do nothing;
  v_made := found;
  v_old := treadle.find_schedule(p_name);
  v_new := jsonb_populate_record(v_old, p_settings - array['task', 'dag']);
  if p_settings ? 'cron' then
    v_new.cron := v_cron;
  end if;
  if p_settings ?| array['task', 'dag'] then
    v_new.template := p_settings - c_settings[3:];
  end if;
  if not v_made and v_new is not distinct from v_old then
    return 'unchanged';
  end if;

  perform treadle.check_timezone(v_new.timezone);
  perform treadle.try_schedule(v_new);
  if (v_new.cron, v_new.timezone) is distinct from (v_old.cron, v_old.timezone) then
    v_new.next_at := null;
    v_new.from_at := treadle.clock();
  end if;
  perform treadle.change_schedule(v_new, 'schedule.defined', p_actor, p_settings - 'task' - 'dag');
  return case when v_made then 'created' else 'changed' end;
exception
  when check_violation or not_null_violation or data_exception then
    get stacked diagnostics v_constraint = constraint_name, v_column = column_name;
    perform treadle.refuse(
      format(
        'schedule %s cannot be defined so: %s', left(quote_nullable(p_name), 60),
        treadle.broken_rule(sqlerrm, v_constraint, v_column)
      ),
      jsonb_build_object('argument', 'schedule'),
      'It needs a cron line of five fields or a word like @daily, and a task or a DAG. A name has '
      '1 to 150 of A-Z a-z 0-9 _ . : / -; catch_up is skip, one or all; overlap is allow, skip or '
      'cancel_previous; jitter_s is 0 to 86400; grace_s is 1 to 86400.'
    );
end;
$$;

comment on function treadle.define_schedule(text, jsonb, text) is
'Make or change a schedule: a cron line in a time zone and the task or DAG that it makes.';

revoke all on function treadle.define_schedule(text, jsonb, text) from public;
grant execute on function treadle.define_schedule(text, jsonb, text) to treadle_operator;
