-- add_note: what an attempt wants the next one to know, should it not come to an end.
--
-- select treadle.add_note(id, token, 'the login page needs JavaScript');
--
-- Kept at once, so that it outlives a crash. The same words again are one note.
--
-- Concurrency: see hold_claim.
-- Lock order:  tasks.
-- Raises:      TR001 invalid argument, TR101 claim lost.

create or replace function treadle.add_note(p_id uuid, p_token uuid, p_note text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task treadle.tasks;
begin
  if octet_length(p_note) between 1 and 4000 is not true then
    perform treadle.refuse(
      'a note must have 1 to 4000 bytes', jsonb_build_object('argument', 'note'),
      'Keep it short: it goes into the prompt of the next attempt.'
    );
  end if;

  v_task := treadle.hold_claim(p_id, p_token);
  if jsonb_array_length(coalesce(v_task.attempt_notes, '[]')) >= 100 then
    perform treadle.refuse(
      format('task %s has 100 notes already', p_id),
      jsonb_build_object('argument', 'note', 'task_id', p_id), 'Leave fewer notes.'
    );
  end if;
  update treadle.tasks
  set
    attempt_notes = coalesce(tasks.attempt_notes, '[]') || jsonb_build_object(
      'token', p_token, 'attempt', tasks.attempt, 'at', treadle.clock(), 'note', p_note
    )
  where
    tasks.id = p_id
    and not coalesce(tasks.attempt_notes, '[]')
      @> jsonb_build_array(jsonb_build_object('token', p_token, 'note', p_note));
end;
$$;

comment on function treadle.add_note(uuid, uuid, text) is
'Leave a note for later attempts of a claimed task.';

grant execute on function treadle.add_note(uuid, uuid, text) to treadle_worker;
