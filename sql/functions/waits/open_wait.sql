-- open_wait: begin to wait for an answer or an event, under a name.
--
-- select * from treadle.open_wait(id, token, 'ship', '{"question": "Ship it?", "approvers": 1}');
-- select * from treadle.open_wait(id, token, 'paid', '{"event": "invoice.paid", "key": "4711"}');
--
-- The same name again is the same wait, with its answer once it has one. An event that came after
-- the task was made, and that the task has not taken yet, is taken at once. The task keeps its
-- claim; to give it up until the answer is there, call suspend_task.
--
-- Concurrency: one event after the other, see touch_topic; fenced by the claim.
-- Lock order:  tasks, topics, waits, then the rest.
-- Raises:      TR001 invalid argument, TR002 too large, TR101 claim lost, TR104 step conflict.

create or replace function treadle.open_wait(
  p_id     uuid,
  p_token  uuid,
  p_name   text,
  p_wait   jsonb,
  out wait_id uuid,
  out status text,
  out answer jsonb
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now   timestamptz := treadle.clock();
  v_new   treadle.waits := treadle.prepare_wait(p_wait, v_now);
  v_task  treadle.tasks;
  v_known record;
  v_event treadle.events;
begin
  perform treadle.check_step(p_name);
  v_task := treadle.hold_claim(p_id, p_token);
  v_known := treadle.known_wait(p_id, p_name, v_new);
  if v_known.known then
    wait_id := v_known.wait_id;
    status := v_known.status;
    answer := v_known.answer;
    return;
  end if;

  if v_new.kind = 'event' then
    perform treadle.touch_topic(v_new.event, v_new.event_key);
    v_event := treadle.untaken_event(v_task, v_new.event, v_new.event_key);
  end if;
  v_new.id := treadle.uuidv7();
  v_new.task_id := p_id;
  v_new.name := p_name;
  v_new.status := 'open';
  v_new.awaited := false;
  v_new.opened_at := v_now;
  insert into treadle.waits select v_new.*;
  update treadle.tasks set durable = true where tasks.id = p_id and not tasks.durable;
  perform treadle.record_wait(
    v_new, 'opened', v_task.agent_id,
    jsonb_strip_nulls(
      jsonb_build_object(
        'question', v_new.question, 'event', v_new.event, 'key', v_new.event_key,
        'expires_at', v_new.expires_at
      )
    )
  );

  if v_event.id is not null then
    v_new := treadle.take_event(v_new, v_event);
  end if;
  perform treadle.wake_promoter(v_new.expires_at) where v_new.status = 'open';
  wait_id := v_new.id;
  status := v_new.status;
  answer := treadle.wait_answer(v_new);
end;
$$;

comment on function treadle.open_wait(uuid, uuid, text, jsonb) is
'Ask a question, ask for approval or wait for an event; the answer when it is there already.';

revoke all on function treadle.open_wait(uuid, uuid, text, jsonb) from public;
grant execute on function treadle.open_wait(uuid, uuid, text, jsonb) to treadle_worker;
