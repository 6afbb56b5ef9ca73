-- known_wait: what a task already has under the name of a wait that it opens.
--
-- The wait itself, as often as it is asked for. A forked task may have only the answer, as a step.
-- A task that came back to life asks anew what nobody answered while it lived.
--
-- Concurrency: the caller holds the task.
-- Lock order:  waits, after tasks.
-- Raises:      TR104 step conflict.

create or replace function treadle.known_wait(
  p_task  uuid,
  p_name  text,
  p_new   treadle.waits,
  out known boolean,
  out wait_id uuid,
  out status text,
  out answer jsonb
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_wait treadle.waits;
  v_step treadle.steps;
begin
  delete from treadle.waits
  where waits.task_id = p_task and waits.name = p_name and waits.status = 'cancelled'
  returning waits.id into wait_id;
  delete from treadle.answers where answers.wait_id = known_wait.wait_id;

  select waits.* into v_wait from treadle.waits
  where waits.task_id = p_task and waits.name = p_name;
  select steps.* into v_step from treadle.steps
  where steps.task_id = p_task and steps.name = p_name;

  if v_step.kind <> 'wait'
    or row(v_wait.kind = 'event', v_wait.event, v_wait.event_key)
    is distinct from row(p_new.kind = 'event', p_new.event, p_new.event_key)
    and v_wait.id is not null then
    perform treadle.refuse(
      format('task %s has %L already, and it is something else', p_task, p_name),
      jsonb_build_object(
        'task_id', p_task, 'name', p_name, 'kind', coalesce(v_wait.kind, v_step.kind),
        'event', v_wait.event, 'key', v_wait.event_key
      ),
      'Give each step and each wait of a task a name of its own.',
      'TR104'
    );
  end if;

  known := v_wait.id is not null or v_step.name is not null;
  wait_id := v_wait.id;
  status := coalesce(v_wait.status, v_step.output ->> 'status');
  answer := coalesce(treadle.wait_answer(v_wait), v_step.output);
end;
$$;

comment on function treadle.known_wait(uuid, text, treadle.waits) is
'Internal: the wait or the answer that a task has under a name.';

revoke all on function treadle.known_wait(uuid, text, treadle.waits) from public;
