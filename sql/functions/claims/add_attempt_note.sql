-- add_attempt_note: store a note of an attempt for later attempts, in case this one fails.
--
-- select treadle.add_attempt_note(id, token, 'the login page needs JavaScript');
--
-- It is stored at once, so that it survives a crash. Storing the same text again adds no note.
--
-- Concurrency: see lock_claim.
-- Lock order:  tasks, attempt_notes.
-- Raises:      TR001 invalid argument, TR101 claim lost.

create or replace function treadle.add_attempt_note(p_id uuid, p_token uuid, p_note text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task  treadle.tasks;
  v_notes integer;
  v_known boolean;
begin
  if octet_length(p_note) between 1 and 4000 is not true then
    perform treadle.raise_error(
      'a note must be 1 to 4000 bytes long', jsonb_build_object('argument', 'note'),
      'Keep it short: it goes into the prompt of the next attempt.'
    );
  end if;

  v_task := treadle.lock_claim(p_id, p_token);
  select count(*), coalesce(bool_or(kept.claim_token = p_token and kept.note = p_note), false)
  into v_notes, v_known
  from treadle.attempt_notes as kept
  where kept.task_id = p_id;
  if v_notes >= 100 then
    perform treadle.raise_error(
      format('task %s already has 100 notes', p_id),
      jsonb_build_object('argument', 'note', 'task_id', p_id), 'Store fewer notes.'
    );
  end if;
  if not v_known then
    insert into treadle.attempt_notes (task_id, number, claim_token, attempt, at, note)
    values (p_id, v_notes + 1, p_token, v_task.attempt, treadle.clock(), p_note);
  end if;
end;
$$;

comment on function treadle.add_attempt_note(uuid, uuid, text) is
'Store a note for later attempts of a claimed task.';

grant execute on function treadle.add_attempt_note(uuid, uuid, text) to treadle_worker;
