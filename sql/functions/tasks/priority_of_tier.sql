-- priority_of_tier: the priority in the middle of a tier, by its name or its number from 1 to 5.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.priority_of_tier(p_tier text)
returns smallint
language plpgsql
immutable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_names constant text[] := array['critical', 'high', 'normal', 'low', 'background'];
  c_middles constant integer[] := array[5, 20, 45, 70, 90];
  v_at integer := case
    when p_tier ~ '^[1-5]$' then p_tier::integer else array_position(c_names, lower(p_tier))
  end;
begin
  if v_at is null then
    perform treadle.refuse(
      format('there is no tier %s', coalesce(quote_literal(left(p_tier, 60)), 'null')),
      jsonb_build_object('argument', 'tier', 'tier', left(p_tier, 200)),
      'Tiers: ' || array_to_string(c_names, ', ') || '; or their numbers, 1 to 5.'
    );
  end if;
  return c_middles[v_at];
end;
$$;

comment on function treadle.priority_of_tier(text) is
'The priority for a tier: critical 5, high 20, normal 45, low 70, background 90.';

revoke all on function treadle.priority_of_tier(text) from public;
grant execute on function treadle.priority_of_tier(text) to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
