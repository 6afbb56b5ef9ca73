-- answer_wait: answer a question, or vote on an approval.
--
-- select treadle.answer_wait(id, '"approve"', 'alice', 'looks good');
--
-- answered: the wait is decided now and the task goes on. recorded: more people have to give the
-- same answer. already: a repeated call. A wait is decided when as many people as approvers gave
-- the same answer; an approval is decided by one reject or revise. Each person has one answer, and
-- until the decision the last one counts. The answer to a question about a budget is a limit in
-- dollars, or false.
--
-- Concurrency: the task is locked, then the wait is updated, so votes are counted one after
-- another.
-- Lock order:  tasks, dags, waits, budgets, then the rest.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 it has ended, TR206 wait not found.

-- raise_late_answer: raise the error for an answer that comes too late, with how the wait ended.
--
-- Raises:      TR102 it has ended.
create or replace function treadle.raise_late_answer(p_wait treadle.waits)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  -- An answer that is one of the options is not free text, so it may be repeated.
  v_answer text := case
    when p_wait.options @> jsonb_build_array(p_wait.answer) then left(p_wait.answer::text, 100)
    else treadle.excerpt(p_wait.answer)
  end;
begin
  perform treadle.raise_error(
    format('wait %s is no longer open: %s', p_wait.id, case
      when p_wait.status = 'cancelled' then 'its task has ended'
      when p_wait.status = 'expired' then 'it has expired'
      when p_wait.answered_by is null
        then format('it expired and got the answer %s', v_answer)
      else format('%s answered %s', p_wait.answered_by, v_answer)
    end),
    jsonb_build_object(
      'wait_id', p_wait.id, 'task_id', p_wait.task_id, 'status', p_wait.status,
      'by', p_wait.answered_by, 'at', p_wait.ended_at
    ),
    'Nothing was changed. See the view treadle.wait_details for the answers.',
    'TR102'
  );
end;
$$;

-- find_wait: find a wait that people may answer; an error if there is none.
--
-- Raises:      TR001 invalid argument, TR206 wait not found.
create or replace function treadle.find_wait(p_wait uuid)
returns treadle.waits
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wait treadle.waits;
begin
  select waits.* into v_wait from treadle.waits where waits.id = p_wait;
  if not found then
    perform treadle.raise_error(
      format('there is no wait %s', coalesce(p_wait::text, 'null')),
      jsonb_build_object('wait_id', p_wait),
      'To list open waits: select * from treadle.wait_details where status = ''open''',
      'TR206'
    );
  elsif v_wait.kind = 'event' then
    perform treadle.raise_error(
      format('wait %s is for the event %L, not for an answer', p_wait, v_wait.event),
      jsonb_build_object('wait_id', p_wait, 'event', v_wait.event, 'key', v_wait.event_key),
      format(
        'To emit it: select treadle.emit_event(%L, ''{}'', %L)', v_wait.event, v_wait.event_key
      )
    );
  end if;
  return v_wait;
end;
$$;

-- check_answer: check an answer against the options or the schema of a wait.
-- Raises:      TR001 invalid argument, TR002 too large.
create or replace function treadle.check_answer(
  p_wait   treadle.waits,
  p_value  jsonb,
  p_name   text default 'answer'
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
begin
  perform treadle.check_document(p_name, p_value);
  if p_wait.options is not null and not exists (
    select from jsonb_array_elements(p_wait.options) as options where options.value = p_value
  ) then
    perform treadle.raise_error(
      format(
        '%s %s is not one of %s', p_name, treadle.excerpt(p_value), left(p_wait.options::text, 1000)
      ),
      jsonb_build_object('argument', p_name, 'options', p_wait.options),
      'Use one of the options exactly as written.'
    );
  end if;

  v_problem := treadle.answer_problem(p_wait.schema, p_value, p_name);
  if v_problem is not null then
    perform treadle.raise_error(
      format('%s does not fit the schema: %s', p_name, left(v_problem, 1000)),
      jsonb_build_object('argument', p_name, 'problem', v_problem, 'schema', p_wait.schema),
      'Schema: ' || left(p_wait.schema::text, 2000)
    );
  end if;
end;
$$;

create or replace function treadle.answer_wait(
  p_wait   uuid,
  p_value  jsonb,
  p_actor  text default session_user,
  p_note   text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_actor   text := coalesce(p_actor, session_user);
  v_wait    treadle.waits := treadle.find_wait(p_wait);
  v_before  jsonb;
  v_same    bigint;
  v_decided boolean;
begin
  perform treadle.check_actor(v_actor, p_note);
  perform treadle.check_answer(v_wait, p_value);
  perform treadle.ensure_durable();
  -- The answer false ends the task.
  perform treadle.lock_failure_cascade(array[v_wait.task_id], false)
  where v_wait.kind = 'budget' and p_value = 'false';
  perform treadle.lock_tasks(array[v_wait.task_id]);
  -- Updated, not only locked: two votes with the same older snapshot must not both count as the
  -- first.
  update treadle.waits set status = waits.status where waits.id = p_wait
  returning waits.* into v_wait;
  select answers.value into v_before
  from treadle.answers
  where answers.wait_id = p_wait and answers.actor = v_actor;

  if v_before = p_value and (v_wait.status = 'open' or v_wait.answer = p_value) then
    return 'already';
  elsif v_wait.status <> 'open' then
    perform treadle.raise_late_answer(v_wait);
  end if;

  insert into treadle.answers (wait_id, actor, value, note, at)
  values (p_wait, v_actor, p_value, p_note, treadle.clock())
  on conflict (wait_id, actor) do update
  set value = excluded.value, note = excluded.note, at = excluded.at;
  select count(*) into v_same
  from treadle.answers
  where answers.wait_id = p_wait and answers.value = p_value;
  v_decided := v_same >= v_wait.approvers
    or (v_wait.kind = 'approval' and p_value in ('"reject"', '"revise"'));

  perform treadle.emit_wait_event(
    v_wait, 'answered', v_actor,
    jsonb_build_object('value', p_value, 'note', p_note, 'decided', v_decided)
  );
  if not v_decided then
    return 'recorded';
  end if;
  perform treadle.end_wait(v_wait, 'answered', p_value, v_actor, p_note);
  perform treadle.answer_budget(v_wait, p_value, v_actor) where v_wait.kind = 'budget';
  perform treadle.resume_tasks(array[v_wait.task_id]);
  return 'answered';
end;
$$;

comment on function treadle.answer_wait(uuid, jsonb, text, text) is
'Answer a question of a task; returns whether that decided it.';

grant execute on function treadle.answer_wait(uuid, jsonb, text, text) to
treadle_producer, treadle_operator;
