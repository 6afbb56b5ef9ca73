-- declare_schedules: the schedules of an application, {"name": {settings}}, as its code has them.
--
-- Called by workers when they start and by treadle schedules sync. What code says the same way as
-- the last time is left alone: a change that an operator made since stays, and so does a pause. A
-- schedule that was not made in code is not code's to change. The answer says of each: created,
-- changed or unchanged.
--
-- Concurrency: writes nothing when nothing is new.
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
    perform treadle.refuse(
      'the schedules must be a json object',
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
      perform treadle.refuse(
        format('schedule %s was made by %s, not in code', schedules.name, schedules.created_by),
        jsonb_build_object('argument', 'schedules', 'schedule', schedules.name),
        'Give yours another name, or have an operator remove that one.'
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
'Make the schedules of an application known; what code has not changed is left alone.';

grant execute on function treadle.declare_schedules(jsonb, text) to
treadle_producer, treadle_worker;
