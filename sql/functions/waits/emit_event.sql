-- emit_event: say that something happened; every task that waits for it goes on.
--
-- select treadle.emit_event('invoice.paid', '{"amount": 10}', '4711');
--
-- A task that begins to wait later takes it too, if it was made before. With p_dedup_key a repeat
-- returns the same id and changes nothing. p_task is the task that says so, for the bounds of
-- triggers: what follows from it follows from that task.
--
-- Concurrency: part of the caller's transaction: it happened exactly if that commits. Nobody who
--              waits is missed; a transaction with an older view may fail with 40001 instead.
-- Lock order:  tasks, by id; topics, waits, then the rest.
-- Raises:      TR001 invalid argument, TR002 too large.

create or replace function treadle.emit_event(
  p_event      text,
  p_payload    jsonb default '{}',
  p_key        text default '',
  p_dedup_key  text default null,
  p_actor      text default null,
  p_task       uuid default null
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_tries constant integer := 20;
  v_actor text := coalesce(p_actor, session_user);
  v_id    bigint;
begin
  perform treadle.check_topic(p_event, p_key);
  perform treadle.check_document('payload', p_payload);
  perform treadle.check_actor(v_actor);
  if octet_length(p_dedup_key) not between 1 and 200 then
    perform treadle.refuse(
      'dedup_key must have 1 to 200 bytes',
      jsonb_build_object('argument', 'dedup_key'),
      'Leave it out for an event that may be repeated.'
    );
  end if;
  perform treadle.keep_durable();

  v_id := treadle.emitted(p_event, p_dedup_key);
  for v_try in 1..c_tries loop
    exit when v_id is not null;
    begin
      v_id := treadle.send_event(
        p_event, p_payload, p_key, p_dedup_key, v_actor, v_try = c_tries, p_task
      );
    exception
      -- What this try locked is free again.
      when object_in_use then null;
    end;
  end loop;
  return v_id;
end;
$$;

comment on function treadle.emit_event(text, jsonb, text, text, text, uuid) is
'Emit an event by name and key; returns its id.';

revoke all on function treadle.emit_event(text, jsonb, text, text, text, uuid) from public;
grant execute on function treadle.emit_event(text, jsonb, text, text, text, uuid) to
treadle_producer, treadle_worker, treadle_operator;
