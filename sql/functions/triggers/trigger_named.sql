-- trigger_named: a trigger by its name, held; an error when there is none.
--
-- Concurrency: the row is locked to the end of the transaction.
-- Lock order:  triggers.
-- Raises:      TR212 unknown trigger.

create or replace function treadle.trigger_named(p_name text)
returns treadle.triggers
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_trigger treadle.triggers;
begin
  select triggers.*
  into v_trigger
  from treadle.triggers
  where triggers.name = p_name
  for no key update;
  if not found then
    perform treadle.refuse(
      format('there is no trigger %s', left(quote_nullable(p_name), 100)),
      jsonb_build_object('name', left(p_name, 200)),
      'List them: select name from treadle.trigger_status',
      'TR212'
    );
  end if;
  return v_trigger;
end;
$$;

comment on function treadle.trigger_named(text) is
'Internal: the trigger of this name, locked.';

revoke all on function treadle.trigger_named(text) from public;
