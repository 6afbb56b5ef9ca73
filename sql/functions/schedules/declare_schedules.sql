-- declare_schedules: store the schedules that the code of an application declares: {"name":
-- {settings}}.
--
-- Called by workers at start and by treadle schedules sync. A declaration that is the same as last
-- time changes nothing, so that changes and pauses by an operator stay. Schedules that were not
-- declared in code cannot be changed from code. Returns created, changed or unchanged for each.
--
-- Concurrency: writes nothing if nothing has changed.
-- Lock order:  schedules in order of name; as define_schedule.
-- Raises:      TR001 invalid argument, and what define_schedule raises.

create or replace function treadle.declare_schedules(
  p_schedules  jsonb,
  p_actor      text default null
)
returns table (name text, verdict text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_each record;
begin
  if jsonb_typeof(p_schedules) is distinct from 'object' then
    perform treadle.raise_error(
      'the schedules must be a JSON object',
      jsonb_build_object('argument', 'schedules'),
      'For example {"nightly": {"cron": "@daily", "task": {"type": "report"}}}.'
    );
  end if;
  for v_each in
    select given.key as name, given.value as settings
    from jsonb_each(p_schedules) as given
    order by given.key collate "C"
  loop
    name := v_each.name;
    verdict := 'unchanged';
    if not exists (
      select from treadle.schedules
      where schedules.name = v_each.name and schedules.declared = v_each.settings
    ) then
      perform treadle.raise_error(
        format('schedule %s was created by %s, not in code', schedules.name, schedules.created_by),
        jsonb_build_object('argument', 'schedules', 'schedule', schedules.name),
        'Use another name, or ask an operator to remove that schedule.'
      )
      from treadle.schedules
      where schedules.name = v_each.name and schedules.declared is null;
      verdict := treadle.define_schedule(v_each.name, v_each.settings, p_actor);
      update treadle.schedules
      set declared = v_each.settings
      where schedules.name = v_each.name;
    end if;
    return next;
  end loop;
end;
$$;

comment on function treadle.declare_schedules(jsonb, text) is
'Store the schedules that an application declares; unchanged declarations are left alone.';

grant execute on function treadle.declare_schedules(jsonb, text) to
treadle_producer, treadle_worker;
