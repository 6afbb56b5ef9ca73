-- check_wait_types: refuse parts of a wait that have the wrong type.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_wait_types(p_given jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text;
  v_must text;
begin
  select rules.name, rules.must
  into v_name, v_must
  from (
    values
    ('question', 'string', 'text'),
    ('event', 'string', 'text'),
    ('key', 'string', 'text'),
    ('options', 'array', 'a list'),
    ('schema', 'object', 'a json schema'),
    ('approvers', 'number', 'a number'),
    ('expires_s', 'number', 'a number of seconds'),
    ('expires_at', 'string', 'a time as text'),
    ('on_expiry', 'string', 'text')
  ) as rules (name, type, must)
  where jsonb_typeof(p_given -> rules.name) <> rules.type
  limit 1;

  if found then
    perform treadle.refuse(
      format('%s must be %s, not %s', v_name, v_must, treadle.excerpt(p_given -> v_name)),
      jsonb_build_object('argument', v_name),
      format('Leave %s out for the default.', v_name)
    );
  end if;

  if p_given ->> 'approvers' !~ '^([1-9][0-9]?|100)$' then
    perform treadle.refuse(
      format('approvers must be 1 to 100, not %s', treadle.excerpt(p_given -> 'approvers')),
      jsonb_build_object('argument', 'approvers'),
      'Say how many people must give the same answer.'
    );
  end if;
end;
$$;

comment on function treadle.check_wait_types(jsonb) is
'Internal: refuses a wait whose parts are not of their types.';

revoke all on function treadle.check_wait_types(jsonb) from public;
