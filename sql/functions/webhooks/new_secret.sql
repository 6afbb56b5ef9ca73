-- new_secret: a random secret in the form of Standard Webhooks.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.new_secret()
returns text
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
-- Three random uuids have 366 random bits; 256 of them are kept.
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

comment on function treadle.new_secret() is
'Internal: a new secret to sign messages with.';

revoke all on function treadle.new_secret() from public;
