-- answer_wait: answer a question, or vote on an approval.
--
-- select treadle.answer_wait(id, '"approve"', 'alice', 'looks good');
--
-- answered: it is decided now and the task goes on. recorded: more people have to say the same.
-- already: a repeat. It is decided when as many people as it has approvers gave the same answer;
-- of an approval, one reject or revise decides. A person has one answer, and until it is decided
-- the last one counts. The answer to a question about money is a limit in dollars, or false.
--
-- Concurrency: the task is locked, then the wait is written, so votes come one after the other.
-- Lock order:  tasks, dags, waits, budgets, then the rest.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 it has ended, TR206 wait not found.

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
  perform treadle.keep_durable();
  -- No more money ends the task.
  perform treadle.lock_fallout(array[v_wait.task_id], false)
  where v_wait.kind = 'budget' and p_value = 'false';
  perform treadle.lock_tasks(array[v_wait.task_id]);
  -- Written, not just locked: two votes with the same older view must not both find one vote.
  update treadle.waits set status = waits.status where waits.id = p_wait
  returning waits.* into v_wait;
  select answers.value into v_before
  from treadle.answers
  where answers.wait_id = p_wait and answers.actor = v_actor;

  if v_before = p_value and (v_wait.status = 'open' or v_wait.answer = p_value) then
    return 'already';
  elsif v_wait.status <> 'open' then
    perform treadle.refuse_answer(v_wait);
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

  perform treadle.record_wait(
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
'Answer what a task asked; says whether that decided it.';

revoke all on function treadle.answer_wait(uuid, jsonb, text, text) from public;
grant execute on function treadle.answer_wait(uuid, jsonb, text, text) to
treadle_producer, treadle_operator;
