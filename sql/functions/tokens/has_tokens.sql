-- has_tokens: return whether the HTTP interfaces require a token, and whether a live token exists.
--
-- An expired token still means that this database is not open to everyone.

create or replace function treadle.has_tokens(out wanted boolean, out live boolean)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
select
  count(*) > 0,
  coalesce(bool_or(treadle.status_of_token(found.revoked_at, found.expires_at) = 'live'), false)
from (
  select api_tokens.revoked_at, api_tokens.expires_at
  from treadle.api_tokens
  where api_tokens.revoked_at is null
  -- The token that expires last: if it is not live, no token is.
  order by api_tokens.expires_at desc nulls first
  limit 1
) as found
$$;

comment on function treadle.has_tokens() is
'Whether a token exists that is not revoked, and whether one of them is live.';

grant execute on function treadle.has_tokens() to treadle_operator;
