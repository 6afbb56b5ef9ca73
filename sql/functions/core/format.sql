-- format: format times, durations, amounts and errors as text.

-- format_duration: format a duration for people: 40 s, 3 min, 2 h, 5 d.
create or replace function treadle.format_duration(p_span interval)
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

comment on function treadle.format_duration(interval) is
'A duration as text, in its largest fitting unit.';

-- format_rfc3339: format a time for programs: RFC 3339 in UTC, whatever the time zone of the
-- session.
create or replace function treadle.format_rfc3339(p_at timestamptz)
returns text
language sql
stable
parallel safe
return pg_catalog.to_char(
  pg_catalog.date_trunc('milliseconds', p_at at time zone 'UTC'),
  'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
);

-- last_line: return the last line of a text; a traceback ends with the error.
create or replace function treadle.last_line(p_text text)
returns text
language sql
immutable
parallel safe
return pg_catalog.left(
  pg_catalog.split_part(
    nullif(pg_catalog.btrim(p_text, E' \t\r\n'), ''), E'\n', -1
  ),
  300
);

comment on function treadle.last_line(text) is
'The last line of a text that is not empty, cut to 300 characters.';

-- format_usd: format an amount of money for people.
create or replace function treadle.format_usd(p_usd numeric)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select '$' || case
    when p_usd = round(p_usd, 2) then round(p_usd, 2) else trim_scale(p_usd)
  end
$$;

-- format_utc: format a time for people, in UTC whatever the time zone of the session.
create or replace function treadle.format_utc(p_at timestamptz)
returns text
language sql
stable
parallel safe
return pg_catalog.to_char(
  pg_catalog.date_trunc('second', p_at at time zone 'UTC'), 'YYYY-MM-DD HH24:MI:SS "UTC"'
);

comment on function treadle.format_utc(timestamptz) is
'A time as text, to the second, in UTC.';

grant execute on function treadle.format_duration(interval) to treadle_observer, treadle_operator;
grant execute on function treadle.last_line(text) to treadle_observer, treadle_operator;
grant execute on function treadle.format_utc(timestamptz) to treadle_observer, treadle_operator;
