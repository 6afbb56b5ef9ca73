-- placeholder_problem: what is wrong with the places of a template that stand for values.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.placeholder_problem(p_template jsonb)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select
    case
      when
        jsonb_typeof(found.place -> '$event') <> 'string'
        or found.place - array['$event', 'default'] <> '{}'
        then 'a place has "$event" and perhaps "default", nothing else'
      when not found.place ->> '$event' ~ '^[^.]+([.][^.]+)*$'
        then '"$event" is names with dots between them: data.url'
      else
        'an event has no '
        || quote_literal(treadle.excerpt_name(split_part(found.place ->> '$event', '.', 1)))
    end
  from jsonb_path_query(p_template, 'strict $.** ? (@.type() == "object")') as found (place)
  where
    found.place ? '$event' and (
      jsonb_typeof(found.place -> '$event') <> 'string'
      or found.place - array['$event', 'default'] <> '{}'
      or not found.place ->> '$event' ~ '^[^.]+([.][^.]+)*$'
      or split_part(found.place ->> '$event', '.', 1) <> all (treadle.event_places())
    )
  limit 1
$$;

comment on function treadle.placeholder_problem(jsonb) is
'Internal: why a place in a template cannot be filled in; null when all can.';

revoke all on function treadle.placeholder_problem(jsonb) from public;
