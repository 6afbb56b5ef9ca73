-- new_token: the text of a new token: trd_, its id, _, its secret, a checksum.
--
-- The id is public, the secret has 256 random bits. By the checksum those who look for leaked
-- secrets know a token when they see one, and mistyped ones are refused without a look.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.new_token()
returns text
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
select
  body.text || left(
    translate(encode(sha256(convert_to(body.text, 'UTF8')), 'base64'), '+/', '-_'), 6
  )
from (
  select
    'trd_'
    || left(replace(gen_random_uuid()::text, '-', ''), 12)
    || '_'
    -- The 32 random bytes of a webhook's secret, in the alphabet of addresses.
    || translate(substr(treadle.new_secret(), 7), '+/=', '-_') as text
) as body
$$;

comment on function treadle.new_token() is
'Internal: a new random token.';

revoke all on function treadle.new_token() from public;
