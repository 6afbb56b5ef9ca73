-- webhook_delay: how many seconds to wait after so many failures in a row.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.webhook_delay(
  p_failures  integer,
  p_after_s   double precision default null
)
returns double precision
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
-- Doubles up to a quarter of an hour, a part of it by chance; what the receiver asks for counts
-- up to an hour.
select
  greatest(
    least(900, power(2, least(p_failures, 12) - 1)) * (0.75 + random() / 4),
    least(coalesce(p_after_s, 0), 3600)
  )
$$;

comment on function treadle.webhook_delay(integer, double precision) is
'Internal: the back-off of a webhook, in seconds.';

revoke all on function treadle.webhook_delay(integer, double precision) from public;
