-- fail_webhook: record a failed delivery and delay the next one; no event is lost.
--
-- Concurrency: only the holder of the lease, which ends here.
-- Lock order:  webhooks.

-- webhook_delay: return how many seconds to wait after a number of failures in a row.
create or replace function treadle.webhook_delay(
  p_failures  integer,
  p_after_s   double precision default null
)
returns double precision
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
-- Doubles up to 15 minutes, with jitter; a Retry-After of the receiver is respected up to an hour.
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
  -- With backoff this takes about 15 minutes.
  c_failing constant integer := 10;
  v_now  timestamptz := treadle.clock();
  v_old  treadle.webhooks := treadle.lock_webhook(p_name, p_token);
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
  perform treadle.record_delivery(p_name, p_id, p_status, p_error, p_ms);
  if v_new.status <> v_old.status then
    perform treadle.emit_webhook_event(
      case when v_new.status = 'paused' then 'paused' else 'failed' end, p_name, null,
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
'Record a failed delivery; returns the status of the webhook, or null if the lease is lost.';

grant execute on function treadle.fail_webhook(
  text, uuid, bigint, integer, text, double precision, integer
) to treadle_operator;
