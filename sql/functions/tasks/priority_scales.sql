-- priority_scales: convert between priorities, tiers and urgencies.

-- raise_invalid_priority: raise the error for a number that is not a priority.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.raise_invalid_priority(p_priority integer)
returns void
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.raise_error(
    format('priority must be 0 to 100, not %s', coalesce(p_priority::text, 'null')),
    jsonb_build_object('argument', 'priority'),
    'Use 0 (critical) to 100 (background).'
  );
end;
$$;

-- priority_of_tier: return the middle priority of a tier, by its name or its number from 1 to 5.
--
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
    perform treadle.raise_error(
      format('there is no tier %s', coalesce(quote_literal(left(p_tier, 60)), 'null')),
      jsonb_build_object('argument', 'tier', 'tier', left(p_tier, 200)),
      'Tiers: ' || array_to_string(c_names, ', ') || ', or their numbers 1 to 5.'
    );
  end if;
  return c_middles[v_at];
end;
$$;

comment on function treadle.priority_of_tier(text) is
'The priority for a tier: critical 5, high 20, normal 45, low 70, background 90.';

-- tier_of_priority: return the name of the tier of a priority.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.tier_of_priority(p_priority integer)
returns text
language plpgsql
immutable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_priority is null or p_priority not between 0 and 100 then
    perform treadle.raise_invalid_priority(p_priority);
  end if;
  return case
    when p_priority < 10 then 'critical'
    when p_priority < 30 then 'high'
    when p_priority < 60 then 'normal'
    when p_priority < 80 then 'low'
    else 'background'
  end;
end;
$$;

comment on function treadle.tier_of_priority(integer) is
'The tier of a priority: critical 0-9, high 10-29, normal 30-59, low 60-79, background 80-100.';

-- priority_of_urgency: return the priority for an urgency of 1 (lowest) to 10 (highest).
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.priority_of_urgency(p_urgency integer)
returns smallint
language plpgsql
immutable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_urgency is null or p_urgency not between 1 and 10 then
    perform treadle.raise_error(
      format('urgency must be 1 to 10, not %s', coalesce(p_urgency::text, 'null')),
      jsonb_build_object('argument', 'urgency'),
      'Use 1 (lowest) to 10 (highest), which mean the priorities 95 to 5.'
    );
  end if;
  return 105 - 10 * p_urgency;
end;
$$;

comment on function treadle.priority_of_urgency(integer) is
'The priority for an urgency of 1 to 10: 95 to 5, in tens.';

-- urgency_of_priority: return the urgency from 1 to 10 that is closest to a priority.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.urgency_of_priority(p_priority integer)
returns smallint
language plpgsql
immutable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_priority is null or p_priority not between 0 and 100 then
    perform treadle.raise_invalid_priority(p_priority);
  end if;
  return greatest(1, 10 - p_priority / 10);
end;
$$;

comment on function treadle.urgency_of_priority(integer) is
'The urgency for a priority: 10 for 0 to 9, 9 for 10 to 19, down to 1 for 90 to 100.';

grant execute on function treadle.priority_of_tier(text) to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
grant execute on function treadle.tier_of_priority(integer) to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
grant execute on function treadle.priority_of_urgency(integer) to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
grant execute on function treadle.urgency_of_priority(integer) to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
