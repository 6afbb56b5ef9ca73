-- check_gate: refuse a key that no gate can have, and a limit that makes no sense.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_gate(
  p_key     text,
  p_unit    text,
  p_amount  numeric,
  p_per_s   double precision
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text := case
    when p_key is null or p_key !~ '^[A-Za-z0-9_.:/-]{1,105}$' or p_key like 'over:%'
      then 'a key has 1 to 105 of letters, digits and _ . : / - and does not begin with over:'
    when p_key like 'type:%' and not treadle.is_gate(p_key)
      then 'a key that begins with type: names a task type, and there is none of this name'
    when p_amount is null and p_per_s is null and p_unit is null then null
    when p_amount is null then 'a period or a unit needs a limit'
    when p_per_s is null then 'a limit needs a period: per_s'
    when p_unit is null or p_unit not in ('starts', 'tokens', 'usd')
      then 'the unit is starts, tokens or usd'
    when not (p_amount > 0 and p_amount < 1e12) then 'the limit must be above 0 and below 1e12'
    when p_unit = 'starts' and p_amount < 1 then 'less than one start is none at all'
    when not p_per_s between 0.1 and 2678400
      then 'the period must be 0.1 seconds to 31 days'
  end;
begin
  if v_problem is not null then
    perform treadle.refuse(
      format('gate %s cannot be defined so: %s', left(quote_nullable(p_key), 60), v_problem),
      jsonb_build_object('argument', 'gate', 'gate', left(p_key, 200)),
      'For example: select treadle.define_gate(''anthropic'', '
      '''{"limit": 50, "per_s": 60, "unit": "starts"}'')'
    );
  end if;
end;
$$;

comment on function treadle.check_gate(text, text, numeric, double precision) is
'Internal: says what is wrong with a gate.';

revoke all on function treadle.check_gate(text, text, numeric, double precision) from public;
