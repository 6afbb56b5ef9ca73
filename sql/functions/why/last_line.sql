-- last_line: what a text says in its last line: a traceback ends with the error.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

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
'Internal: the last line of a text that has something in it, 300 characters of it.';

revoke all on function treadle.last_line(text) from public;
grant execute on function treadle.last_line(text) to treadle_observer, treadle_operator;
