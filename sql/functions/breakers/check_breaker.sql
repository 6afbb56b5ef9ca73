-- check_breaker: refuse overrides of a breaker that make no sense.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_breaker(p_breaker jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
begin
  if jsonb_typeof(p_breaker) = 'object' then
    select case
      when each.key = 'threshold' then 'threshold is a whole number from 0 (none) to 1000000'
      when each.key in ('first_probe_s', 'cooldown_s')
        then each.key || ' is a number of seconds, above 0 and up to 31 days'
      else format('unknown setting %s', left(quote_literal(each.key), 100))
    end
    into v_problem
    from jsonb_each(p_breaker) as each
    where
      case
        when jsonb_typeof(each.value) <> 'number' then true
        when each.key = 'threshold'
          then not (
            (each.value #>> '{}')::numeric between 0 and 1000000
            and (each.value #>> '{}')::numeric % 1 = 0
          )
        when each.key in ('first_probe_s', 'cooldown_s')
          then not ((each.value #>> '{}')::numeric between 0.001 and 2678400)
        else true
      end
    order by each.key
    limit 1;
  else
    v_problem := 'it must be a json object';
  end if;
  if v_problem is not null then
    perform treadle.refuse(
      format('a breaker cannot be set so: %s', v_problem),
      jsonb_build_object('argument', 'breaker'),
      'Settings: threshold, first_probe_s, cooldown_s'
    );
  end if;
end;
$$;

comment on function treadle.check_breaker(jsonb) is
'Internal: says what is wrong with the overrides of a breaker.';

revoke all on function treadle.check_breaker(jsonb) from public;
