-- check_lease: refuse leases without a holder or with an end that makes no sense.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_lease(
  p_token    uuid,
  p_holder   uuid,
  p_lease_s  double precision,
  p_keep_s   double precision
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if num_nulls(p_token, p_holder) > 0
    or not coalesce(p_lease_s between 0.1 and 3600, false)
    or not coalesce(p_keep_s between p_lease_s and 2592000, false) then
    perform treadle.refuse(
      'a submission needs a token, a holder, a lease of 0.1 to 3600 seconds and a claim that is '
      'kept for longer, up to 2592000 seconds',
      jsonb_build_object('argument', 'lease_s')
    );
  end if;
end;
$$;

comment on function treadle.check_lease(uuid, uuid, double precision, double precision) is
'Internal: checks who holds a submission, and for how long.';

revoke all on function treadle.check_lease(uuid, uuid, double precision, double precision)
from public;
