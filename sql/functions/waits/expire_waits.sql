-- expire_waits: end waits whose time is over, each according to its on_expiry policy.
--
-- A wait that cannot be ended does not stop the others. It is reported in problem; pass its id in
-- p_skip to leave it out.
--
-- Concurrency: skips waits of locked tasks; the condition is checked again under the lock.
-- Lock order:  tasks (skips locked rows); waits, then the rest.

-- expire_wait: apply the on_expiry policy of one wait.
--
-- deny rejects, default uses the default answer, fail ends the wait without a value, and escalate
-- leaves it open without a time limit and emits an event.
--
-- Concurrency: the caller has locked the task; an answer given in the meantime wins.
-- Lock order:  waits, then the rest; after tasks.
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
    perform treadle.emit_wait_event(
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
  perform treadle.emit_wait_event(
    v_wait, 'expired', null,
    jsonb_build_object('on_expiry', v_wait.on_expiry, 'value', v_value)
  );
  perform treadle.resume_tasks(array[v_wait.task_id]);
  return true;
end;
$$;

create or replace function treadle.expire_waits(
  p_limit  integer default 100,
  p_skip   uuid[] default '{}'
)
returns table (id uuid, problem text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := treadle.clock();
  v_done uuid[];
  v_ids  uuid[] := array(
    select waits.id
    from treadle.waits
    inner join treadle.tasks on waits.task_id = tasks.id
    where
      waits.status = 'open' and waits.expires_at <= v_now and waits.id <> all (p_skip)
    order by waits.expires_at
    limit p_limit
    for no key update of tasks skip locked
  );
begin
  if v_ids = '{}' then
    return;
  end if;
  perform treadle.ensure_durable();
  begin
    v_done := array(
      select due.id from unnest(v_ids) as due (id) where treadle.expire_wait(due.id, v_now)
    );
    return query select due.id, null::text from unnest(v_done) as due (id);
  exception when others then
    -- One of them failed: try each one separately, so that the others succeed.
    for v_at in 1..cardinality(v_ids) loop
      begin
        if treadle.expire_wait(v_ids[v_at], v_now) then
          return query select v_ids[v_at], null::text;
        end if;
      exception when others then
        return query select v_ids[v_at], sqlerrm;
      end;
    end loop;
  end;
end;
$$;

comment on function treadle.expire_waits(integer, uuid[]) is
'End waits that were not answered in time; returns their ids.';

grant execute on function treadle.expire_waits(integer, uuid[]) to treadle_worker;
