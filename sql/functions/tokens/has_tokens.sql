-- has_tokens: whether the HTTP interfaces want a token, and whether anybody has one that works.
--
-- A token that has only expired still says that this database is not open to everybody.

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
  -- The one that lasts longest: if it is not live, none is.
  order by api_tokens.expires_at desc nulls first
  limit 1
) as found
$$;

comment on function treadle.has_tokens() is
'Whether there is a token that is not revoked, and whether one of them is live.';

grant execute on function treadle.has_tokens() to treadle_operator;
