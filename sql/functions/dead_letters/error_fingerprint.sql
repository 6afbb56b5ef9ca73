-- error_fingerprint: return a short identifier for errors of one kind.
--
-- It includes the failure class, so that all errors of a group failed in the same way.

-- error_line: return the line of an error that says what went wrong.
--
-- The first line that is not empty; for a Python traceback, the line after its last frame.
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

  -- No line is skipped unless the text starts with a traceback.
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

-- error_pattern: return the first line of an error with its variable parts replaced.
--
-- Quoted text, URLs, paths, times, ids and numbers become <text>, <url>, <path>, <time> and <n>.
-- HTTP status codes, exit codes and signal numbers stay, since they are different causes.
create or replace function treadle.error_pattern(p_error text)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  c_code  constant text := '(http(/[0-9.]+)?|status|code|errno|error)[^a-z0-9]{0,3}';
  c_end   constant text := '(exit (code|status)|signal)[^a-z0-9]{0,3}';
  c_rules constant text[][] := array[
    -- Between matching quotes; not the apostrophe in: isn't.
    ['(?<![a-z0-9_])''(?![1-5][0-9]{2} )(\\.|[^''\\])*''(?![a-z0-9_])', '<text>'],
    ['(?<![a-z0-9_])"(?![1-5][0-9]{2} )(\\.|[^"\\])*"(?![a-z0-9_])', '<text>'],
    ['`[^`]*`|“[^”]*”|«[^»]*»', '<text>'],
    ['[a-z][a-z0-9+.-]*://[^\s''"<>()]+', '<url>'],
    ['[a-z0-9._%+-]+@[a-z0-9-]+(\.[a-z0-9-]+)+', '<email>'],
    ['[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.,]+(Z|[+-][0-9:]+)?)?', '<time>'],
    ['(?<![a-z0-9_.<>/])(~|\.{1,2}|[a-z]:)?([/\\][^\s/\\:,;''"()<>]+)+[/\\]?', '<path>'],
    ['(?<![a-z0-9_.<>/-])[a-z0-9_.-]+(/[a-z0-9_.-]+)+\.[a-z][a-z0-9]{0,7}(?![a-z0-9_])', '<path>'],
    -- Ids of all kinds: 0x..., hexadecimal digits, or long words with three digits.
    ['0x[0-9a-f]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', '<n>'],
    ['(?<![a-z0-9])(?=[a-f]*[0-9])[0-9a-f]{8,}(?![a-z0-9])', '<n>'],
    ['(?<![a-z0-9_])(?=([a-z_-]*[0-9]){3})[a-z0-9_-]{12,}(?![a-z0-9_])', '<n>'],
    ['(?<!' || c_code || '|' || c_end || ')(?<![0-9])[0-9]+([.,:][0-9]+)*', '<n>'],
    [
      '(?<=' || c_code || ')(?<!' || c_end || ')(?![1-5][0-9]{2}(?![a-z0-9]))[0-9]+([.,:][0-9]+)*',
      '<n>'
    ],
    ['(?<=' || c_end || ')(?![0-9]{1,3}(?![a-z0-9]))[0-9]+([.,:][0-9]+)*', '<n>'],
    ['(?<![a-z0-9>])-(?=<n>)', ''],
    ['(<[a-z]+>)([,;]?\s?\1)+', '\1']
  ];
  v_text text := treadle.error_line(p_error);
begin
  for v_at in 1..array_length(c_rules, 1) loop
    v_text := regexp_replace(v_text, c_rules[v_at][1], c_rules[v_at][2], 'gi');
  end loop;
  return nullif(left(btrim(regexp_replace(v_text, '\s+', ' ', 'g')), 300), '');
end;
$$;

create or replace function treadle.error_fingerprint(p_class text, p_about text)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select left(md5(coalesce(p_class, '') || e'\n' || coalesce(p_about, '')), 12)
$$;

-- dead_letter_json: return the JSON data for the event of a dead letter.
create or replace function treadle.dead_letter_json(p_letter treadle.dead_letters)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select
    jsonb_build_object(
      'letter_id', p_letter.id,
      'class', p_letter.class,
      'reason', left(p_letter.reason, 500),
      'attempts', p_letter.attempts,
      'total_cost_usd', p_letter.total_cost_usd,
      'poison_pill', p_letter.poison_pill,
      'fingerprint', p_letter.fingerprint
    )
$$;
