-- expire_wait: do with one wait what it said for the case that nobody answers.
--
-- deny rejects, default takes the default, fail ends it without a value, and escalate leaves it
-- open for good and says so in an event.
--
-- Concurrency: the caller holds the task; who answered it meanwhile was first.
-- Lock order:  waits, then the rest; after tasks.
-- Raises:      nothing.

create or replace function treadle.expire_wait(p_wait uuid, p_now timestamptz)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_wait  treadle.waits;
  v_value jsonb;
begin
  select waits.*
  into v_wait
  from treadle.waits
  where waits.id = p_wait and waits.status = 'open' and waits.expires_at <= p_now
  for no key update;
  if not found then
    return false;
  end if;

  if v_wait.on_expiry = 'escalate' then
    update treadle.waits set escalated_at = p_now, expires_at = null where waits.id = p_wait;
    perform treadle.record_wait(
      v_wait, 'escalated', null,
      jsonb_build_object('question', v_wait.question, 'expired_at', v_wait.expires_at)
    );
    return true;
  end if;

  v_value := case v_wait.on_expiry
    when 'deny' then '"reject"'
    when 'default' then v_wait.default_answer
  end;
  perform treadle.end_wait(
    v_wait,
    case v_wait.on_expiry when 'fail' then 'expired' else 'answered' end,
    v_value,
    null,
    'nobody answered in time'
  );
  perform treadle.record_wait(
    v_wait, 'expired', null,
    jsonb_build_object('on_expiry', v_wait.on_expiry, 'value', v_value)
  );
  perform treadle.resume_tasks(array[v_wait.task_id]);
  return true;
end;
$$;

comment on function treadle.expire_wait(uuid, timestamptz) is
'Internal: expires one wait that is due.';

revoke all on function treadle.expire_wait(uuid, timestamptz) from public;
