-- span_words: a length of time for people: 40 s, 3 min, 2 h, 5 d.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.span_words(p_span interval)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select
    case
      when length.s < 120 then pg_catalog.round(length.s) || ' s'
      when length.s < 7200 then pg_catalog.round(length.s / 60) || ' min'
      when length.s < 172800 then pg_catalog.round(length.s / 3600) || ' h'
      else pg_catalog.round(length.s / 86400) || ' d'
    end
  from (select abs(extract(epoch from p_span)) as s) as length
$$;

comment on function treadle.span_words(interval) is
'Internal: a length of time in its largest fitting unit.';

revoke all on function treadle.span_words(interval) from public;
grant execute on function treadle.span_words(interval) to treadle_observer, treadle_operator;
