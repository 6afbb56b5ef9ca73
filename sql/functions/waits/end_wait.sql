-- end_wait: give a wait its answer, and keep it as a step of the task.
--
-- Does not wake the task: the caller does, with resume_tasks, once for all that it ended. A task
-- that remembers too much already gets no step; it finds the answer when it asks again.
--
-- Concurrency: the caller holds the task and the wait, which is open.
-- Lock order:  waits, steps; after tasks.
-- Raises:      nothing.

create or replace function treadle.end_wait(
  p_wait      treadle.waits,
  p_status    text,
  p_value     jsonb,
  p_by        text,
  p_note      text,
  p_event_id  bigint default null
)
returns treadle.waits
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_wait treadle.waits;
begin
  update treadle.waits
  set
    status = p_status,
    answer = p_value,
    answered_by = p_by,
    note = p_note,
    event_id = p_event_id,
    ended_at = treadle.clock()
  where waits.id = p_wait.id
  returning waits.* into v_wait;

  begin
    perform treadle.keep_step(
      tasks.id, v_wait.name, 'wait', treadle.wait_answer(v_wait), tasks.attempt, null, null
    )
    from treadle.tasks
    where tasks.id = v_wait.task_id;
  exception
    when sqlstate 'TR002' then null;
  end;
  return v_wait;
end;
$$;

comment on function treadle.end_wait(treadle.waits, text, jsonb, text, text, bigint) is
'Internal: ends a wait with its answer.';

revoke all on function treadle.end_wait(treadle.waits, text, jsonb, text, text, bigint) from public;
