-- event_cursor: convert an event id or a cursor to a cursor for read_events.
--
-- select treadle.event_cursor('77');       -- the cursor of event 77
-- select treadle.event_cursor('8123.77');  -- already a cursor
-- select treadle.event_cursor('0');        -- the beginning
--
-- A cursor beyond the newest transaction comes from another server. It is rejected, since reading
-- after it would return nothing.
--
-- Raises:      TR001 invalid argument.

-- find_event: find an event by its id; an error if there is none.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.find_event(p_id bigint)
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
    perform treadle.raise_error(
      format('there is no event %s', coalesce(p_id::text, 'without an id')),
      jsonb_build_object('argument', 'event', 'event_id', p_id),
      'To list events: select id, kind from treadle.event_log order by id desc limit 20'
    );
  end if;
  return v_event;
end;
$$;

create or replace function treadle.event_cursor(p_after text)
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
    v_event := treadle.find_event(p_after::bigint);
    return format('%s.%s', v_event.xid, v_event.id);
  elsif p_after is null or p_after !~ '^[0-9]{1,19}[.][0-9]{1,18}$'
    or split_part(p_after, '.', 1)::xid8 > pg_snapshot_xmax(pg_current_snapshot()) then
    perform treadle.raise_error(
      format('%s is not a valid event cursor', left(quote_nullable(p_after), 60)),
      jsonb_build_object('argument', 'after'),
      'Pass the id or the cursor of an event that you have read, or 0 for the beginning.'
    );
  end if;
  return p_after;
end;
$$;

comment on function treadle.event_cursor(text) is
'The cursor after which to read, from the id of an event or from a cursor.';

grant execute on function treadle.event_cursor(text) to treadle_observer, treadle_operator;
