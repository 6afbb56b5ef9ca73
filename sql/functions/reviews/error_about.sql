-- error_about: what an error is about: its first line without what differs from case to case.
--
-- Quoted text, addresses, paths, moments, ids and numbers become <text>, <url>, <path>, <time> and
-- <n>. The status of an answer over HTTP, the code of an exit and the number of a signal stay: they
-- are different causes.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.error_about(p_error text)
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
    -- Between quotes that stand like quotes; not the one in: isn't.
    ['(?<![a-z0-9_])''(?![1-5][0-9]{2} )(\\.|[^''\\])*''(?![a-z0-9_])', '<text>'],
    ['(?<![a-z0-9_])"(?![1-5][0-9]{2} )(\\.|[^"\\])*"(?![a-z0-9_])', '<text>'],
    ['`[^`]*`|“[^”]*”|«[^»]*»', '<text>'],
    ['[a-z][a-z0-9+.-]*://[^\s''"<>()]+', '<url>'],
    ['[a-z0-9._%+-]+@[a-z0-9-]+(\.[a-z0-9-]+)+', '<email>'],
    ['[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.,]+(Z|[+-][0-9:]+)?)?', '<time>'],
    ['(?<![a-z0-9_.<>/])(~|\.{1,2}|[a-z]:)?([/\\][^\s/\\:,;''"()<>]+)+[/\\]?', '<path>'],
    ['(?<![a-z0-9_.<>/-])[a-z0-9_.-]+(/[a-z0-9_.-]+)+\.[a-z][a-z0-9]{0,7}(?![a-z0-9_])', '<path>'],
    -- Ids of all kinds: from 0x.., of hexadecimal digits, or long and with three digits.
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

comment on function treadle.error_about(text) is
'Internal: the first line of an error without numbers, ids, quoted text, paths and moments.';

revoke all on function treadle.error_about(text) from public;
