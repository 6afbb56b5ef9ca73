-- reset_breaker: close the breaker of a type by hand and forget its failures.
--
-- Concurrency: one row.
-- Lock order:  breakers.
-- Raises:      TR203 unknown type.

create or replace function treadle.reset_breaker(p_type text, p_actor text default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_state text;
begin
  perform treadle.check_names('default', p_type);
  select breakers.state into v_state from treadle.breakers
  where breakers.type = p_type
  for no key update;
  if v_state <> 'closed' then
    perform treadle.close_breaker(
      p_type, 'reset', coalesce(p_actor, session_user), treadle.clock()
    );
    return true;
  end if;
  update treadle.breakers set failures = 0 where breakers.type = p_type;
  return false;
end;
$$;

comment on function treadle.reset_breaker(text, text) is
'Close the breaker of a type; says whether it was open.';

revoke all on function treadle.reset_breaker(text, text) from public;
grant execute on function treadle.reset_breaker(text, text) to treadle_operator;
