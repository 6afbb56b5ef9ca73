-- tell_action: what became of an action, for those who watch events.
--
-- Concurrency: one new row.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.tell_action(
  p_id      uuid,
  p_status  text,
  p_actor   text,
  p_note    text
)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  insert into treadle.events (at, kind, task_id, queue, actor, data)
  values (
    treadle.clock(), 'harness.' || p_status, p_id, 'harness', coalesce(p_actor, session_user),
    jsonb_build_object('note', left(split_part(p_note, e'\n', 1), 2000))
  )
$$;

comment on function treadle.tell_action(uuid, text, text, text) is
'Internal: an event about an action of the harness.';

revoke all on function treadle.tell_action(uuid, text, text, text) from public;
