-- open_wait: start waiting for an answer or an event, under a name.
--
-- select * from treadle.open_wait(id, token, 'ship', '{"question": "Ship it?", "approvers": 1}');
-- select * from treadle.open_wait(id, token, 'paid', '{"event": "invoice.paid", "key": "4711"}');
--
-- The same name returns the same wait, with its answer once there is one. An event that was emitted
-- after the task was created, and that the task has not received yet, is delivered at once. The
-- task keeps its claim; to release it until the answer arrives, call suspend_task.
--
-- Concurrency: events of a topic are serialized, see lock_topic; the claim token is checked.
-- Lock order:  tasks, topics, waits, then the rest.
-- Raises:      TR001 invalid argument, TR002 too large, TR101 claim lost, TR104 step conflict.

-- find_existing_wait: return the wait or the answer that a task already has under a name.
--
-- It returns the same wait however often it is asked for. A forked task may have only the answer,
-- as a step. A retried task asks again the questions that were not answered before it ended.
--
-- Concurrency: the caller has locked the task.
-- Lock order:  waits, after tasks.
-- Raises:      TR104 step conflict.
create or replace function treadle.find_existing_wait(
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
  delete from treadle.answers where answers.wait_id = find_existing_wait.wait_id;

  select waits.* into v_wait from treadle.waits
  where waits.task_id = p_task and waits.name = p_name;
  select steps.* into v_step from treadle.steps
  where steps.task_id = p_task and steps.name = p_name;

  if v_step.kind <> 'wait'
    or row(v_wait.kind = 'event', v_wait.event, v_wait.event_key)
    is distinct from row(p_new.kind = 'event', p_new.event, p_new.event_key)
    and v_wait.id is not null then
    perform treadle.raise_error(
      format('task %s already has a different step or wait named %L', p_task, p_name),
      jsonb_build_object(
        'task_id', p_task, 'name', p_name, 'kind', coalesce(v_wait.kind, v_step.kind),
        'event', v_wait.event, 'key', v_wait.event_key
      ),
      'Give each step and each wait of a task its own name.',
      'TR104'
    );
  end if;

  known := v_wait.id is not null or v_step.name is not null;
  wait_id := v_wait.id;
  status := coalesce(v_wait.status, v_step.output ->> 'status');
  answer := coalesce(treadle.wait_answer(v_wait), v_step.output);
end;
$$;

-- next_unconsumed_event: return the oldest event since the task was created that it has not
-- received yet.
--
-- A task receives the events of a topic in order, so only those after the last one are left. They
-- are read from the newest backwards, and no further than the creation of the task.
--
-- Concurrency: the caller has locked the task and the topic: no event is added or delivered
-- meanwhile.
create or replace function treadle.next_unconsumed_event(
  p_task   treadle.tasks,
  p_event  text,
  p_key    text
)
returns treadle.events
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  v_taken bigint;
  v_event treadle.events;
  v_found treadle.events;
begin
  select max(waits.event_id)
  into v_taken
  from treadle.waits
  where waits.task_id = p_task.id and waits.event = p_event and waits.event_key = p_key;

  for v_event in
    select events.*
    from treadle.events
    where events.kind = p_event and events.key = p_key and events.id > coalesce(v_taken, 0)
    order by events.id desc
  loop
    exit when v_event.at < p_task.created_at;
    v_found := v_event;
  end loop;
  return v_found;
end;
$$;

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
  v_task := treadle.lock_claim(p_id, p_token);
  v_known := treadle.find_existing_wait(p_id, p_name, v_new);
  if v_known.known then
    wait_id := v_known.wait_id;
    status := v_known.status;
    answer := v_known.answer;
    return;
  end if;

  if v_new.kind = 'event' then
    perform treadle.lock_topic(v_new.event, v_new.event_key);
    v_event := treadle.next_unconsumed_event(v_task, v_new.event, v_new.event_key);
  end if;
  v_new.id := treadle.uuidv7();
  v_new.task_id := p_id;
  v_new.name := p_name;
  v_new.status := 'open';
  v_new.awaited := false;
  v_new.opened_at := v_now;
  insert into treadle.waits select v_new.*;
  update treadle.tasks set durable = true where tasks.id = p_id and not tasks.durable;
  perform treadle.emit_wait_event(
    v_new, 'opened', v_task.agent_id,
    jsonb_strip_nulls(
      jsonb_build_object(
        'question', v_new.question, 'event', v_new.event, 'key', v_new.event_key,
        'expires_at', v_new.expires_at
      )
    )
  );

  if v_event.id is not null then
    v_new := treadle.deliver_event(v_new, v_event);
  end if;
  perform treadle.notify_promoter(v_new.expires_at) where v_new.status = 'open';
  wait_id := v_new.id;
  status := v_new.status;
  answer := treadle.wait_answer(v_new);
end;
$$;

comment on function treadle.open_wait(uuid, uuid, text, jsonb) is
'Ask a question, ask for approval or wait for an event; returns the answer if there is one.';

grant execute on function treadle.open_wait(uuid, uuid, text, jsonb) to treadle_worker;
