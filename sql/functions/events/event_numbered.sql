-- event_numbered: an event by its id; an error when there is none.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.event_numbered(p_id bigint)
returns treadle.events
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_event treadle.events;
begin
  select events.* into v_event from treadle.events where events.id = p_id;
  if not found then
    perform treadle.refuse(
      format('there is no event %s', coalesce(p_id::text, 'without an id')),
      jsonb_build_object('argument', 'event', 'event_id', p_id),
      'List them: select id, kind from treadle.event_log order by id desc limit 20'
    );
  end if;
  return v_event;
end;
$$;

comment on function treadle.event_numbered(bigint) is 'Internal: the event with this id.';

revoke all on function treadle.event_numbered(bigint) from public;
