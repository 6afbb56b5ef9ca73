-- find_secret: find and reject credentials in documents, and generate new secrets.

-- find_secret: return the path of the first value that looks like a credential; null if there is
-- none.
--
-- select treadle.find_secret('{"github": {"token": "abc"}}');  -- github.token
--
-- A value counts by its name: a text under password, token, api_key and similar. It also counts by
-- its form: keys of well-known services (also as a name), private keys, web tokens, and passwords
-- in URLs, query strings and NAME=value. References such as ${GITHUB_TOKEN} or {"$secret":
-- "github"} are allowed. This finds credentials put there by mistake, not those that somebody
-- hides.
create or replace function treadle.find_secret(p_value jsonb)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  with recursive parts (path, name, value) as (
    select null::text, null::text, p_value
    -- Most documents contain none of these words and are not checked further.
    where p_value::text ~* (
      'pass.?w|passphrase|secret|token|api.?key|access.?key|private.?key|credential|authorization'
      || '|cookie|gh[opsur]_|github_pat_|glpat-|sk-|a[ks]ia|xox|aiza|eyj|bearer|basic |://[^/]*@'
      || '|trd_'
    )
    union all
    select
      -- A long key is shortened: it may be the credential itself.
      concat_ws(
        '.', parts.path,
        case
          when char_length(inner_part.name) > 30 then left(inner_part.name, 4) || '...'
          else inner_part.name
        end
      ),
      case when inner_part.key = '$secret' then null else coalesce(inner_part.key, parts.name) end,
      inner_part.value
    from parts
    cross join lateral (
      select each.key as name, each.key, each.value
      from jsonb_each(
        case when jsonb_typeof(parts.value) = 'object' then parts.value else '{}' end
      ) as each (key, value)
      union all
      select (each.at - 1)::text, null, each.value
      from jsonb_array_elements(
        case when jsonb_typeof(parts.value) = 'array' then parts.value else '[]' end
      ) with ordinality as each (value, at)
    ) as inner_part
  )

  select left(coalesce(found.path, '$'), 200)
  from (
    select
      parts.path,
      concat_ws(e'\n', parts.name, parts.value #>> '{}') as text,
      parts.value #>> '{}' as value,
      jsonb_typeof(parts.value) as kind,
      lower(regexp_replace(parts.name, '[^A-Za-z0-9]', '', 'g')) as name
    from parts
    where jsonb_typeof(parts.value) not in ('object', 'array')
  ) as found
  where
    (
      found.name ~ (
        '(password|passwd|passphrase|secret|apikey|accesskey|secretkey|privatekey|credentials?'
        || '|(auth|access|refresh|bearer|api|session|id|github|gitlab|slack|bot|csrf)token)$'
        || '|^(token|authorization|cookie|setcookie)$'
      )
      and found.kind = 'string'
      -- Empty, masked, or a reference to where the value is stored.
      and found.value !~ '^\s*$|^\*+$|^\$\{?\w+\}?$|^\{\{.*\}\}$|^<[^<>]*>$'
    )
    or found.text ~ (
      '\m(gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|sk-[\w-]{20,}'
      || '|A[KS]IA[0-9A-Z]{16}|xox[abeprs]-[\w-]{10,}|AIza[\w-]{35}|trd_[0-9a-f]{12}_[\w-]{20,}'
      || '|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,})'
      || '|-----BEGIN [A-Z ]*PRIVATE KEY-----|[a-z]://[^\s/:@]+:[^\s/@]+@'
      || '|\m([Bb]earer|[Bb]asic) [A-Za-z0-9+/=._~-]{20,}'
      || '|[a-z]://\S+[?&](access_token|api_?key|token|password|(client_)?secret)=[\w.~-]{8,}'
      || '|\m[A-Z0-9_]*(PASSWORD|TOKEN|SECRET|API_?KEY|ACCESS_KEY)=["'']?[\w+/.~-]{8,}'
    )
  limit 1
$$;

comment on function treadle.find_secret(jsonb) is
'The path of a value that looks like a credential, such as github.token; null if there is none.';

-- reject_secret: reject a document that contains what looks like a credential.
--
-- Raises:      TR111 secret refused.
create or replace function treadle.reject_secret(p_value jsonb, p_name text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path text := treadle.find_secret(p_value);
begin
  if v_path is not null then
    perform treadle.raise_error(
      format('the %s is not stored: it seems to contain a credential at %s', p_name, v_path),
      jsonb_build_object('argument', p_name, 'path', v_path),
      'Remove it, or pass a reference to it such as ${GITHUB_TOKEN}.',
      'TR111'
    );
  end if;
end;
$$;

-- new_secret: generate a secret in the format of Standard Webhooks.
create or replace function treadle.new_secret()
returns text
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
-- Three random UUIDs have 366 random bits, of which 256 are used.
select
  'whsec_' || encode(
    sha256(
      uuid_send(gen_random_uuid())
      || uuid_send(gen_random_uuid())
      || uuid_send(gen_random_uuid())
    ),
    'base64'
  )
$$;

grant execute on function treadle.find_secret(jsonb) to
treadle_producer, treadle_worker, treadle_operator;
