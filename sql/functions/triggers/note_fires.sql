-- note_fires: count what triggers did, and say what they could not do.
--
-- A failure is an event each time; a bound that was reached is one at most once an hour. What
-- waits for a full queue is not told before it fails.
--
-- Concurrency: the triggers are updated after everything was enqueued.
-- Lock order:  triggers, by id; events.
-- Raises:      nothing.

create or replace function treadle.note_fires(
  p_fires  treadle.trigger_fires[],
  p_now    timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fire treadle.trigger_fires;
  v_tell boolean;
  v_name text;
begin
  for v_fire in
    select fire.*
    from unnest(p_fires) with ordinality as fire (
      trigger_id, event_id, fired_at, verdict, task_id, dag_id, depth, problem, at
    )
    order by fire.trigger_id, fire.at
  loop
    select
      triggers.name,
      v_fire.verdict = 'failed'
      or (
        v_fire.verdict = 'refused'
        and coalesce(triggers.refused_at < p_now - interval '1 hour', true)
      )
    into v_name, v_tell
    from treadle.triggers
    where triggers.id = v_fire.trigger_id
    for no key update;

    update treadle.triggers
    set
      fired = triggers.fired + (v_fire.verdict = 'fired')::integer,
      refused = triggers.refused + (v_fire.verdict = 'refused')::integer,
      failed = triggers.failed + (v_fire.verdict = 'failed')::integer,
      fired_at = case when v_fire.verdict = 'fired' then p_now else triggers.fired_at end,
      last_task = case
        when v_fire.verdict = 'fired' then v_fire.task_id else triggers.last_task
      end,
      last_dag = case when v_fire.verdict = 'fired' then v_fire.dag_id else triggers.last_dag end,
      last_error = coalesce(v_fire.problem, triggers.last_error),
      error_at = case when v_fire.problem is null then triggers.error_at else p_now end,
      refused_at = case
        when v_fire.verdict = 'refused' and v_tell then p_now else triggers.refused_at
      end
    where triggers.id = v_fire.trigger_id;

    insert into treadle.events (at, kind, key, data)
    select
      p_now, 'trigger.' || v_fire.verdict, v_name,
      jsonb_build_object('event_id', v_fire.event_id, 'problem', v_fire.problem)
    where v_tell and v_fire.problem is not null;
  end loop;
end;
$$;

comment on function treadle.note_fires(treadle.trigger_fires[], timestamptz) is
'Internal: keeps the counts of triggers, and writes the events of those that did not fire.';

revoke all on function treadle.note_fires(treadle.trigger_fires[], timestamptz) from public;
