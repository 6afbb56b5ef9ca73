-- touch_topic: hold an event's name and key until the transaction ends.
--
-- Who emits and who begins to wait both write this row, so one comes after the other and sees what
-- it did. In a transaction with an older view of the database it fails with 40001 instead.
--
-- Concurrency: waits for who holds it.
-- Lock order:  topics, after tasks.
-- Raises:      nothing.

create or replace function treadle.touch_topic(
  p_event     text,
  p_key       text,
  p_event_id  bigint default null
)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  insert into treadle.topics (event, key, event_id)
  values (p_event, p_key, p_event_id)
  on conflict (event, key) do update
  set event_id = coalesce(excluded.event_id, topics.event_id)
$$;

comment on function treadle.touch_topic(text, text, bigint) is
'Internal: locks a topic by writing it.';

revoke all on function treadle.touch_topic(text, text, bigint) from public;
