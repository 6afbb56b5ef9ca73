-- check_topic: refuse the name or key of an event that nobody can emit.
--
-- Kinds that treadle writes itself are its own. Only webhook.received can be emitted: it is what
-- receive_webhook emits, and tasks wait for it.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_topic(p_event text, p_key text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not coalesce(octet_length(p_event) between 1 and 200, false) then
    perform treadle.refuse(
      'the name of an event must have 1 to 200 bytes',
      jsonb_build_object('argument', 'event'),
      'For example: invoice.paid'
    );
  elsif treadle.kinds_beside(p_event) <> '{}' and p_event <> 'webhook.received' then
    perform treadle.refuse(
      format('event %L has a name that only treadle uses', p_event),
      jsonb_build_object('argument', 'event', 'event', p_event),
      'Names that begin with a noun of treadle, like task. or dag., are taken; use another.'
    );
  elsif not coalesce(octet_length(p_key) <= 200, false) then
    perform treadle.refuse(
      'the key of an event must have at most 200 bytes',
      jsonb_build_object('argument', 'key'),
      'Leave it out for an event about nothing in particular.'
    );
  end if;
end;
$$;

comment on function treadle.check_topic(text, text) is
'Internal: refuses names and keys that an event cannot have.';

revoke all on function treadle.check_topic(text, text) from public;
