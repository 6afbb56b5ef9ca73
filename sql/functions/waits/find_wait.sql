-- find_wait: a wait that people may answer; an error when there is none.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR206 wait not found.

create or replace function treadle.find_wait(p_wait uuid)
returns treadle.waits
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wait treadle.waits;
begin
  select waits.* into v_wait from treadle.waits where waits.id = p_wait;
  if not found then
    perform treadle.refuse(
      format('there is no wait %s', coalesce(p_wait::text, 'null')),
      jsonb_build_object('wait_id', p_wait),
      'List them: select * from treadle.wait_details where status = ''open''',
      'TR206'
    );
  elsif v_wait.kind = 'event' then
    perform treadle.refuse(
      format('wait %s is for the event %L, not for an answer', p_wait, v_wait.event),
      jsonb_build_object('wait_id', p_wait, 'event', v_wait.event, 'key', v_wait.event_key),
      format(
        'Emit it: select treadle.emit_event(%L, ''{}'', %L)', v_wait.event, v_wait.event_key
      )
    );
  end if;
  return v_wait;
end;
$$;

comment on function treadle.find_wait(uuid) is
'Internal: the question or approval with this id.';

revoke all on function treadle.find_wait(uuid) from public;
