-- event_place: where to go on reading after an event, for read_events.
--
-- select treadle.event_place('77');       -- the place of event 77
-- select treadle.event_place('8123.77');  -- a place is one already
-- select treadle.event_place('0');        -- the beginning
--
-- A place that no transaction has reached is of another server: who waited there would hear
-- nothing.
--
-- Raises:      TR001 invalid argument.

-- event_numbered: an event by its id; an error when there is none.
--
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

create or replace function treadle.event_place(p_after text)
returns text
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_event treadle.events;
begin
  if p_after ~ '^0+$' then
    return '0.0';
  elsif p_after ~ '^[0-9]{1,18}$' then
    v_event := treadle.event_numbered(p_after::bigint);
    return format('%s.%s', v_event.xid, v_event.id);
  elsif p_after is null or p_after !~ '^[0-9]{1,19}[.][0-9]{1,18}$'
    or split_part(p_after, '.', 1)::xid8 > pg_snapshot_xmax(pg_current_snapshot()) then
    perform treadle.refuse(
      format('there is no place %s among the events', left(quote_nullable(p_after), 60)),
      jsonb_build_object('argument', 'after'),
      'Give the id of an event that you have read, its place, or 0 for the beginning.'
    );
  end if;
  return p_after;
end;
$$;

comment on function treadle.event_place(text) is
'The place among the events after which to read, from the id of an event or a place.';

grant execute on function treadle.event_place(text) to treadle_observer, treadle_operator;
