-- check_actor: refuse a name or a note that says nothing or too much.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_actor(p_actor text, p_note text default null)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not coalesce(octet_length(btrim(p_actor)) > 0 and octet_length(p_actor) <= 200, false) then
    perform treadle.refuse(
      'actor must have 1 to 200 bytes',
      jsonb_build_object('argument', 'actor'),
      'Say who it is, by a name that is always the same.'
    );
  elsif octet_length(p_note) > 10000 then
    perform treadle.refuse(
      format('note has %s bytes, 10000 are allowed', octet_length(p_note)),
      jsonb_build_object('argument', 'note'),
      'Put what is longer into the answer, or elsewhere.'
    );
  end if;
end;
$$;

comment on function treadle.check_actor(text, text) is
'Internal: refuses who has no name, and notes that are too long.';

revoke all on function treadle.check_actor(text, text) from public;
