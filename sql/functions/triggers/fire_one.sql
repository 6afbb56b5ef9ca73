-- fire_one: what a trigger makes of an event: null when nothing, else what it made or why not.
--
-- Concurrency: the pair of trigger and event is unique: it fires once.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      what enqueue_tasks and create_dag raise.

create or replace function treadle.fire_one(
  p_trigger  treadle.triggers,
  p_event    treadle.events,
  p_now      timestamptz
)
returns treadle.trigger_fires
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_facts jsonb := treadle.event_facts(p_event);
  v_made  record;
  v_fire  treadle.trigger_fires;
begin
  if not v_facts @> p_trigger.filter or exists (
    select from treadle.trigger_fires
    where
      trigger_fires.trigger_id = p_trigger.id and trigger_fires.event_id = p_event.id
      and trigger_fires.verdict = 'fired'
  ) then
    return null;
  end if;

  v_fire.trigger_id := p_trigger.id;
  v_fire.event_id := p_event.id;
  v_fire.fired_at := p_now;
  v_fire.depth := treadle.event_depth(p_event) + 1;
  v_fire.verdict := 'fired';
  v_fire.problem := treadle.fire_bound(p_trigger, v_fire.depth, p_now);
  if v_fire.problem is not null then
    v_fire.verdict := 'refused';
  else
    v_made := treadle.make_from(p_trigger, treadle.fill_template(p_trigger.template, v_facts));
    v_fire.task_id := v_made.task_id;
    v_fire.dag_id := v_made.dag_id;
  end if;
  return treadle.keep_fire(v_fire);
end;
$$;

comment on function treadle.fire_one(treadle.triggers, treadle.events, timestamptz) is
'Internal: one trigger and one event.';

revoke all on function treadle.fire_one(treadle.triggers, treadle.events, timestamptz) from public;
