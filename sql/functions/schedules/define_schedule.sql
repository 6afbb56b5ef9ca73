-- define_schedule: create or change a schedule; settings that are not given stay as they are.
--
-- select treadle.define_schedule('nightly', '{
--   "cron": "30 2 * * *", "timezone": "Europe/Berlin",
--   "task": {"type": "report", "queue": "default", "spec": {"day": "{{nominal_date}}"}},
--   "jitter_s": 60, "catch_up": "one", "overlap": "skip", "grace_s": 60
-- }');
--
-- Instead of a task it can have a "dag", as create_dag takes it. The scheduler parses the cron
-- line; an invalid one is reported in last_error. A new cron line or time zone applies from now on;
-- other changes leave the next time as it is. Returns created, changed or unchanged.
--
-- Concurrency: waits for one row; a scheduler that fires it now comes first or sees the change.
-- Lock order:  schedules; as enqueue_batch or create_dag for the dry run.
-- Raises:      TR001 invalid argument, and what the dry run raises.

-- find_schedule: lock and return the schedule with this name.
--
-- Concurrency: waits for the lock.
-- Lock order:  schedules.
-- Raises:      TR211 unknown schedule.
create or replace function treadle.find_schedule(p_name text)
returns treadle.schedules
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schedule treadle.schedules;
begin
  select schedules.* into v_schedule
  from treadle.schedules
  where schedules.name = p_name
  for no key update;
  if v_schedule.id is null then
    perform treadle.raise_error(
      format('there is no schedule %s', left(quote_nullable(p_name), 100)),
      jsonb_build_object('schedule', left(p_name, 200)),
      format(
        'Known schedules: %s. To list them: select name from treadle.schedule_status',
        coalesce(
          (
            select string_agg(known.name, ', ')
            from (select schedules.name from treadle.schedules order by 1 limit 10) as known
          ),
          'none'
        )
      ),
      'TR211'
    );
  end if;
  return v_schedule;
end;
$$;

-- check_timezone: check that the server knows a time zone.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_timezone(p_timezone text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.clock() at time zone p_timezone;
exception
  when invalid_parameter_value then
    perform treadle.raise_error(
      format('there is no time zone %s', left(quote_nullable(p_timezone), 80)),
      jsonb_build_object('argument', 'timezone'),
      'Use a name such as Europe/Berlin, America/New_York or UTC.'
    );
end;
$$;

-- change_schedule: store a new or changed schedule, notify the schedulers and write the event.
--
-- The revision changes, so that times computed before are discarded.
--
-- Concurrency: the caller has locked the row.
-- Lock order:  schedules, then the history.
-- Raises:      check violations of values out of range.
create or replace function treadle.change_schedule(
  p_schedule  treadle.schedules,
  p_kind      text,
  p_actor     text,
  p_data      jsonb default '{}'
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  update treadle.schedules
  set
    cron = p_schedule.cron,
    timezone = p_schedule.timezone,
    template = p_schedule.template,
    jitter_s = p_schedule.jitter_s,
    catch_up = p_schedule.catch_up,
    overlap = p_schedule.overlap,
    grace_s = p_schedule.grace_s,
    revision = schedules.revision + 1,
    from_at = p_schedule.from_at,
    next_at = p_schedule.next_at,
    last_status = p_schedule.last_status,
    last_error = p_schedule.last_error,
    paused_at = p_schedule.paused_at,
    paused_by = p_schedule.paused_by,
    paused_reason = p_schedule.paused_reason,
    declared = p_schedule.declared,
    updated_at = treadle.clock()
  where schedules.id = p_schedule.id;

  insert into treadle.events (at, kind, actor, data)
  values (
    treadle.clock(), p_kind, coalesce(p_actor, session_user),
    jsonb_build_object('schedule', p_schedule.name) || p_data
  );
  perform pg_notify('treadle_schedules', '');
end;
$$;

-- dry_run_schedule: reject a schedule whose task or DAG could not be enqueued now.
--
-- The task or DAG is enqueued and rolled back, so that all rules are checked. A full queue is
-- accepted.
--
-- Concurrency: leaves no rows behind.
-- Lock order:  as enqueue_batch or create_dag.
-- Raises:      TR001 invalid argument, and what enqueue_batch or create_dag raise.
create or replace function treadle.dry_run_schedule(p_schedule treadle.schedules)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task  jsonb := p_schedule.template -> 'task';
  v_dag   jsonb := p_schedule.template -> 'dag';
begin
  if jsonb_typeof(coalesce(v_task, v_dag)) is distinct from 'object' then
    perform treadle.raise_error(
      'a schedule needs a task or a DAG, as a JSON object',
      jsonb_build_object('argument', 'task'),
      'For example {"cron": "@daily", "task": {"type": "report", "spec": {}}}.'
    );
  elsif v_task ?| array['run_at', 'delay_s'] or v_dag -> 'defaults' ?| array['run_at', 'delay_s']
  then
    perform treadle.raise_error(
      'the task of a schedule cannot have run_at or delay_s: the schedule sets the time',
      jsonb_build_object('argument', 'run_at'),
      'To spread start times, use jitter_s.'
    );
  end if;

  begin
    perform treadle.enqueue_template(p_schedule, treadle.clock());
    raise exception using errcode = 'TR999', message = 'dry run';
  exception
    when sqlstate 'TR999' or sqlstate 'TR105' then null;
  end;
end;
$$;

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
    perform treadle.raise_error(
      'a schedule has a task or a DAG, not both', jsonb_build_object('argument', 'dag'),
      'Remove one of them.'
    );
  end if;
  v_cron := btrim(regexp_replace(p_settings ->> 'cron', '\s+', ' ', 'g'));
  -- Words such as @daily are accepted in any case; names of days are left as they are.
  v_cron := case when starts_with(v_cron, '@') then lower(v_cron) else v_cron end;
  insert into treadle.schedules (name, cron, template, from_at, created_by)
  -- The dry run rejects an empty template with a better message than the constraint.
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
  perform treadle.dry_run_schedule(v_new);
  if (v_new.cron, v_new.timezone) is distinct from (v_old.cron, v_old.timezone) then
    v_new.next_at := null;
    v_new.from_at := treadle.clock();
  end if;
  perform treadle.change_schedule(v_new, 'schedule.defined', p_actor, p_settings - 'task' - 'dag');
  return case when v_made then 'created' else 'changed' end;
exception
  when check_violation or not_null_violation or data_exception then
    get stacked diagnostics v_constraint = constraint_name, v_column = column_name;
    perform treadle.raise_error(
      format(
        'schedule %s cannot be defined: %s', left(quote_nullable(p_name), 60),
        treadle.constraint_message(sqlerrm, v_constraint, v_column)
      ),
      jsonb_build_object('argument', 'schedule'),
      'Pass a cron line of five fields or a word like @daily, and a task or a DAG. A name has '
      '1 to 150 of A-Z a-z 0-9 _ . : / -; catch_up is skip, one or all; overlap is allow, skip or '
      'cancel_previous; jitter_s is 0 to 86400; grace_s is 1 to 86400.'
    );
end;
$$;

comment on function treadle.define_schedule(text, jsonb, text) is
'Create or change a schedule: a cron line in a time zone, and the task or DAG to enqueue.';

grant execute on function treadle.define_schedule(text, jsonb, text) to treadle_operator;
