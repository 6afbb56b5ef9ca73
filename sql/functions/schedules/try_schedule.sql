-- try_schedule: refuse a schedule whose work could not be enqueued now.
--
-- It is enqueued for a trial and taken back, so that every rule holds that holds later. A queue
-- that is full at this moment is no reason.
--
-- Concurrency: leaves nothing behind.
-- Lock order:  as enqueue_batch or create_dag.
-- Raises:      TR001 invalid argument, and what enqueue_batch or create_dag raise.

create or replace function treadle.try_schedule(p_schedule treadle.schedules)
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
    perform treadle.refuse(
      'a schedule needs a task or a DAG, as a json object',
      jsonb_build_object('argument', 'task'),
      'For example {"cron": "@daily", "task": {"type": "report", "spec": {}}}.'
    );
  elsif v_task ?| array['run_at', 'delay_s'] or v_dag -> 'defaults' ?| array['run_at', 'delay_s']
  then
    perform treadle.refuse(
      'the task of a schedule has no run_at and no delay_s: the schedule says when',
      jsonb_build_object('argument', 'run_at'),
      'Spread the starts with jitter_s.'
    );
  end if;

  begin
    perform treadle.enqueue_template(p_schedule, treadle.clock());
    raise exception using errcode = 'TR999', message = 'only a trial';
  exception
    when sqlstate 'TR999' or sqlstate 'TR105' then null;
  end;
end;
$$;

comment on function treadle.try_schedule(treadle.schedules) is
'Internal: tries whether the work of a schedule can be enqueued.';

revoke all on function treadle.try_schedule(treadle.schedules) from public;
