-- status_of_token: live, expired or revoked.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.status_of_token(
  p_revoked_at  timestamptz,
  p_expires_at  timestamptz
)
returns text
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
select
  case
    when p_revoked_at is not null then 'revoked'
    when p_expires_at <= treadle.clock() then 'expired'
    else 'live'
  end
$$;

comment on function treadle.status_of_token(timestamptz, timestamptz) is
'Whether a token can be used now: live, expired or revoked.';

revoke all on function treadle.status_of_token(timestamptz, timestamptz) from public;
grant execute on function treadle.status_of_token(timestamptz, timestamptz) to
treadle_observer, treadle_operator;
