-- listen_events: request NOTIFY treadle_events for new events, for a limited time.
--
-- Repeat the call before the time is over; 0 seconds ends it. Without listeners there is no NOTIFY.
--
-- Lock order:  event_listeners.
-- Raises:      TR001 invalid argument.

create or replace function treadle.listen_events(
  p_name     text,
  p_seconds  double precision default 60,
  p_kinds    text[] default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if not coalesce(
    octet_length(p_name) between 1 and 200 and p_seconds >= 0 and p_seconds <= 3600, false
  ) then
    perform treadle.raise_error(
      'a listener needs a name of 1 to 200 bytes and 0 to 3600 seconds',
      jsonb_build_object('argument', 'name'),
      'Repeat the call before the time is over.'
    );
  end if;
  delete from treadle.event_listeners
  where
    (event_listeners.name = p_name and p_seconds = 0)
    or event_listeners.listening_until < clock_timestamp() - interval '1 hour';
  if p_seconds > 0 then
    insert into treadle.event_listeners (name, listening_until, kinds)
    values (p_name, clock_timestamp() + make_interval(secs => p_seconds), p_kinds)
    on conflict (name) do update
    set listening_until = excluded.listening_until, kinds = excluded.kinds;
  end if;
end;
$$;

comment on function treadle.listen_events(text, double precision, text[]) is
'Request NOTIFY treadle_events for new events of some kinds, or of all, for some seconds.';

grant execute on function treadle.listen_events(text, double precision, text[]) to
treadle_worker, treadle_observer, treadle_operator;
