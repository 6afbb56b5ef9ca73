-- rate_limit_in: whether a text says that somebody was asked to slow down.
--
-- A mistake in a program is none, whatever names it mentions.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.rate_limit_in(p_text text)
returns boolean
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  -- Lines of code in a traceback are about something else.
  with said as (
    select regexp_replace(
      regexp_replace(left(p_text, 20000), '^[ \t]+File "[^\n]*(\n[ \t]{4,}[^\n]*)*', '', 'ng'),
      '^[ \t]+at [^\n]*$', '', 'ng'
    ) as words
  )

  select coalesce(
    (
      said.words ~ '(\mrate|Rate|RATE)[ _-]?[Ll](imit|IMIT)'
      or said.words ~* 'too[ _-]?many[ _-]?requests|retry-after|retry after [0-9]'
      or said.words ~* '(?<!disk )quota[ _-]?exceeded|exceeded (your )?(current )?quota'
      -- As a word: not 4290, 0.429, #429, 1,429, x/429 or line 429.
      or said.words ~* '(?<![[:alnum:]_.,#/$-]|line |port )429(?![[:alnum:]_-]|[.,:][[:digit:]])'
    )
    -- First in the line, or after words like: validator x crashed.
    and treadle.error_line(p_text) !~ (
      '^([^:]*: )?((Type|Name|Attribute|Import|ModuleNotFound|Assertion|Syntax|Key)Error)(:|$)'
    ),
    false
  )
  from said
$$;

comment on function treadle.rate_limit_in(text) is
'Internal: finds rate limit, 429, too many requests, quota exceeded, retry-after in a report.';

revoke all on function treadle.rate_limit_in(text) from public;
