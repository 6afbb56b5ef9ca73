-- is_wanted: whether an event is one of those that a webhook asks for.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.is_wanted(p_event treadle.events, p_kinds text[], p_filter jsonb)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
select
  exists (
    select
    from unnest(p_kinds) as kinds (pattern)
    where
      kinds.pattern = (p_event).kind
      or (
        right(kinds.pattern, 1) = '*'
        and starts_with((p_event).kind, left(kinds.pattern, -1))
      )
  )
  and (p_filter = '{}' or treadle.event_document(p_event) @> p_filter)
$$;

comment on function treadle.is_wanted(treadle.events, text[], jsonb) is
'Internal: matches an event with kinds, where * stands at the end, and a filter.';

revoke all on function treadle.is_wanted(treadle.events, text[], jsonb) from public;
