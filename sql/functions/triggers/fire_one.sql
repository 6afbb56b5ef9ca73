-- fire_one: fire a trigger on an event; returns null if it does not match, else what it created or
-- why not.
--
-- Concurrency: the pair of trigger and event is unique, so it fires once.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      what enqueue_tasks and create_dag raise.

-- trigger_depth: return how many triggers in a chain led to an event.
--
-- A task has the depth of the trigger that created it, of its DAG, of the task that spawned it and
-- of the task it was forked from. An event has the depth of its task and its DAG.
create or replace function treadle.trigger_depth(p_event treadle.events)
returns integer
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  with recursive line (id, parent_id, forked_from, dag_id, step) as (
    select tasks.id, tasks.parent_id, task_options.forked_from, tasks.dag_id, 1
    from treadle.tasks
    left join treadle.task_options on tasks.has_options and tasks.id = task_options.task_id
    where tasks.id = p_event.task_id
    union
    select tasks.id, tasks.parent_id, task_options.forked_from, tasks.dag_id, line.step + 1
    from line
    inner join treadle.tasks on tasks.id = any (array[line.parent_id, line.forked_from])
    left join treadle.task_options on tasks.has_options and tasks.id = task_options.task_id
    where line.step < 100
  )

  select coalesce(max(trigger_fires.depth), 0)::integer
  from treadle.trigger_fires
  where
    trigger_fires.verdict = 'fired'
    and coalesce(trigger_fires.task_id, trigger_fires.dag_id) = any (
      array[p_event.task_id, p_event.dag_id]
      || array(select line.id from line)
      || array(select line.dag_id from line)
    )
$$;

-- fire_limit: return why a trigger may not fire now: the chain is too long or the hourly limit is
-- reached.
--
-- Concurrency: reads only; one session fires at a time and sees its own fires.
create or replace function treadle.fire_limit(
  p_trigger  treadle.triggers,
  p_depth    integer,
  p_now      timestamptz
)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select case
    when p_depth > p_trigger.max_depth
      then format('%s triggers led to it; max_depth is %s', p_depth - 1, p_trigger.max_depth)
    when p_trigger.max_per_hour <= (
      select count(*)
      from (
        select from treadle.trigger_fires
        where
          trigger_fires.trigger_id = p_trigger.id
          and trigger_fires.fired_at > p_now - interval '1 hour'
          and trigger_fires.verdict = 'fired'
        limit p_trigger.max_per_hour
      ) as lately
    )
      then format('it has fired %s times within an hour (max_per_hour)', p_trigger.max_per_hour)
  end
$$;

-- record_fire: record what a trigger created for an event; a later try replaces a failure.
--
-- Concurrency: the pair of trigger and event is unique; a session that removes the trigger waits.
-- Lock order:  triggers (shared), trigger_fires.
create or replace function treadle.record_fire(p_fire treadle.trigger_fires)
returns treadle.trigger_fires
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  insert into treadle.trigger_fires (
    trigger_id, event_id, fired_at, verdict, task_id, dag_id, depth, problem
  )
  select
    triggers.id, p_fire.event_id, p_fire.fired_at, p_fire.verdict, p_fire.task_id,
    p_fire.dag_id, p_fire.depth, left(p_fire.problem, 1000)
  from treadle.triggers
  where triggers.id = p_fire.trigger_id
  for key share
  on conflict (trigger_id, event_id) do update
  set
    fired_at = excluded.fired_at, verdict = excluded.verdict, task_id = excluded.task_id,
    dag_id = excluded.dag_id, depth = excluded.depth, problem = excluded.problem
  returning trigger_fires.*
$$;

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
  v_facts jsonb := treadle.event_json(p_event);
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
  v_fire.depth := treadle.trigger_depth(p_event) + 1;
  v_fire.verdict := 'fired';
  v_fire.problem := treadle.fire_limit(p_trigger, v_fire.depth, p_now);
  if v_fire.problem is not null then
    v_fire.verdict := 'refused';
  else
    v_made := treadle.enqueue_filled_template(
      p_trigger, treadle.fill_template(p_trigger.template, v_facts)
    );
    v_fire.task_id := v_made.task_id;
    v_fire.dag_id := v_made.dag_id;
  end if;
  return treadle.record_fire(v_fire);
end;
$$;

-- try_fire: fire one trigger on one event; an error is recorded and does not stop other triggers.
--
-- For an hour a full queue is not a failure: the fire is tried again, see retry_fires.
--
-- Concurrency: transient errors (deadlock, lock timeout, server shutdown or lack of resources) are
-- not the trigger's fault; they are raised, and the call is repeated.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      40xxx, 53xxx, 55P03, 57xxx.
create or replace function treadle.try_fire(
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
  c_retry_for constant interval := '1 hour';
  v_fire     treadle.trigger_fires;
begin
  return treadle.fire_one(p_trigger, p_event, p_now);
exception
  when transaction_rollback or lock_not_available or operator_intervention
    or insufficient_resources then
    raise;
  when others then
    v_fire.trigger_id := p_trigger.id;
    v_fire.event_id := p_event.id;
    v_fire.depth := 0;
    v_fire.fired_at := coalesce(
      (
        select trigger_fires.fired_at
        from treadle.trigger_fires
        where
          trigger_fires.trigger_id = p_trigger.id and trigger_fires.event_id = p_event.id
          and trigger_fires.verdict = 'waiting'
      ),
      p_now
    );
    v_fire.verdict := 'failed';
    v_fire.problem := treadle.mask_text(sqlerrm);
    if sqlstate = 'TR105' and v_fire.fired_at > p_now - c_retry_for then
      v_fire.verdict := 'waiting';
      v_fire.problem := left(treadle.mask_text(sqlerrm), 900) || '; retrying for up to an hour';
    end if;
    return treadle.record_fire(v_fire);
end;
$$;
