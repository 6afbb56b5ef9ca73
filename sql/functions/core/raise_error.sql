-- raise_error: raise errors, and mask credentials in their text.

-- mask_text: mask what looks like a credential in a text for an error or a log.
--
-- PostgreSQL's own messages end with the invalid value; only its first characters are kept.
-- src/treadle/masking.py does the same for errors raised in Python.
create or replace function treadle.mask_text(p_text text)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select regexp_replace(
    regexp_replace(p_text, '^([^"]*: ")([^"]{4})[^"].*"$', '\1\2..."'),
    '\m(gh[opsur]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}'
    || '|A[KS]IA[0-9A-Z]{12,}|xox[abeprs]-[\w-]{10,}|AIza[\w-]{16,}|trd_[0-9a-f]{12}_[\w-]*'
    || '|eyJ[\w-]{8,}(\.[\w-]*)*)'
    || '|-----BEGIN [A-Z ]*PRIVATE KEY.*|://[^\s/:@]+:[^\s/@]+@'
    || '|\m([Bb]earer|[Bb]asic) [A-Za-z0-9+/=._~-]{16,}'
    || '|[?&](access_token|api_?key|token|password|(client_)?secret)=[\w.~-]{8,}'
    || '|\m[A-Z0-9_]*(PASSWORD|TOKEN|SECRET|API_?KEY|ACCESS_KEY)=["'']?[\w+/.~-]{8,}',
    '***', 'g'
  )
$$;

-- mask_json: mask what looks like a credential in the detail of an error.
create or replace function treadle.mask_json(p_value jsonb)
returns jsonb
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
  return case jsonb_typeof(p_value)
    when 'string' then to_jsonb(treadle.mask_text(p_value #>> '{}'))
    when 'object' then coalesce(
      (
        select jsonb_object_agg(treadle.mask_text(parts.key), treadle.mask_json(parts.value))
        from jsonb_each(p_value) as parts
      ),
      '{}'
    )
    when 'array' then coalesce(
      (
        select jsonb_agg(treadle.mask_json(parts.value) order by parts.at)
        from jsonb_array_elements(p_value) with ordinality as parts (value, at)
      ),
      '[]'
    )
    else p_value
  end;
end;
$$;

-- raise_error: raise an error with a message, a detail and a hint.
--
-- Errors reach clients and the server log, so text that looks like a credential is masked.
--
-- Raises:      the given code; TR001 invalid argument by default.
create or replace function treadle.raise_error(
  p_message  text,
  p_detail   jsonb default '{}',
  p_hint     text default '',
  p_code     text default 'TR001'
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception using
    errcode = p_code,
    message = treadle.mask_text(p_message),
    detail = treadle.mask_json(p_detail)::text,
    hint = coalesce(treadle.mask_text(p_hint), '');
end;
$$;

-- problem: return an error as a json object, for functions that return refusals.
--
-- PostgreSQL logs every error that reaches a client, with its context. Functions named try_* call
-- another function, and return the refusals that ordinary requests meet in a column named problem.
-- The change is rolled back, and nothing is logged.
create or replace function treadle.problem(
  p_code text, p_message text, p_detail text, p_hint text
)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'code', p_code,
    'message', p_message,
    'detail', coalesce(nullif(p_detail, ''), '{}')::jsonb,
    'hint', nullif(p_hint, '')
  )
$$;

-- constraint_message: describe a constraint violation by the names of the columns.
--
-- PostgreSQL names only the constraint, which does not tell callers which value is wrong. Returns
-- the original error if no constraint is named.
create or replace function treadle.constraint_message(
  p_error text, p_constraint text, p_column text
)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    nullif(p_column, '') || ' is missing',
    (
      select string_agg(attribute.attname, ' or ' order by attribute.attnum) || ' is not valid'
      from pg_catalog.pg_constraint as rule
      inner join pg_catalog.pg_attribute as attribute
        on rule.conrelid = attribute.attrelid and attribute.attnum = any (rule.conkey)
      where rule.connamespace = 'treadle'::pg_catalog.regnamespace and rule.conname = p_constraint
    ),
    p_error
  )
$$;
