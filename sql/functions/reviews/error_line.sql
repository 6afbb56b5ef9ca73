-- error_line: the line of an error that says what went wrong.
--
-- The first that is not empty; of a traceback of Python the one that follows its last frame.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.error_line(p_error text)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  with lines as (
    select line.words, line.at, line.words ~ '^\s' as is_frame
    from regexp_split_to_table(left(p_error, 30000), '\r?\n') with ordinality as line (words, at)
    where line.words ~ '\S'
  ),

  -- Nothing is passed over unless a traceback comes first.
  opening as (
    select
      case
        when (array_agg(lines.words order by lines.at))[1] ~ '^Traceback \(most recent call last\)'
          then coalesce(max(lines.at) filter (where lines.is_frame), 0)
        else 0
      end as last_frame
    from lines
  )

  select
    left(
      coalesce(
        (
          select lines.words from lines, opening
          where lines.at > opening.last_frame
          order by lines.at
          limit 1
        ),
        (select lines.words from lines order by lines.at limit 1)
      ),
      1000
    )
$$;

comment on function treadle.error_line(text) is
'Internal: the line of an error that names the exception and its message.';

revoke all on function treadle.error_line(text) from public;
