-- fail_webhook: an event did not arrive: the endpoint waits, and nothing is lost.
--
-- Concurrency: only whoever has the lease; it ends here.
-- Lock order:  webhooks.

-- webhook_delay: how many seconds to wait after so many failures in a row.
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

create or replace function treadle.fail_webhook(
  p_name     text,
  p_token    uuid,
  p_id       bigint,
  p_status   integer,
  p_error    text,
  p_after_s  double precision default null,
  p_ms       integer default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  -- With the back-off about a quarter of an hour.
  c_failing constant integer := 10;
  v_now  timestamptz := treadle.clock();
  v_old  treadle.webhooks := treadle.hold_webhook(p_name, p_token);
  v_new  treadle.webhooks;
begin
  if v_old.name is null then
    return null;
  end if;
  update treadle.webhooks
  set
    status = case
      when p_status = 410 then 'paused'
      when v_old.failures + 1 >= c_failing and v_old.status = 'active' then 'failing'
      else v_old.status
    end,
    reason = case when p_status = 410 then 'the endpoint answered 410: gone' else v_old.reason end,
    failures = v_old.failures + 1,
    failed_since_at = coalesce(v_old.failed_since_at, v_now),
    next_try_at
    = v_now + make_interval(secs => treadle.webhook_delay(v_old.failures + 1, p_after_s)),
    last_status = p_status,
    last_error = left(p_error, 500),
    last_try_at = v_now,
    token = null,
    lease_until = null
  where webhooks.name = p_name
  returning webhooks.* into v_new;
  perform treadle.note_delivery(p_name, p_id, p_status, p_error, p_ms);
  if v_new.status <> v_old.status then
    perform treadle.tell_webhook(
      v_new.status, p_name, null,
      jsonb_build_object(
        'failures', v_new.failures, 'since', v_new.failed_since_at, 'error', v_new.last_error
      )
    );
  end if;
  return v_new.status;
end;
$$;

comment on function treadle.fail_webhook(
  text, uuid, bigint, integer, text, double precision, integer
) is
'Record a failed try; returns the status of the webhook now, null when the lease is lost.';

grant execute on function treadle.fail_webhook(
  text, uuid, bigint, integer, text, double precision, integer
) to treadle_operator;
