-- why: every reason that holds now why a task is not running, the weightiest first.
--
-- select sentence from treadle.why('01a1e28c-006d-7ef2-834a-9098ae735bc9');
--
-- Whole rows: select * from treadle.why(id). The reason is a code that does not change, detail has
-- ids, names and numbers, until is when it can change by itself. There is always a row; of a task
-- that runs or has ended it says so. `claimable` is said only where the next claim of the agent
-- named takes the task.
--
-- Concurrency: reads, as of one moment.
-- Lock order:  none.
-- Raises:      TR201 task not found.

create or replace function treadle.why(p_id uuid)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now  timestamptz := treadle.clock();
  v_task treadle.tasks;
  v_lane treadle.lanes;
  v_said boolean := false;
begin
  select tasks.* into v_task from treadle.tasks where tasks.id = p_id;
  if not found then
    perform treadle.refuse_transition(p_id, 'running');
  end if;
  if v_task.completed_at is not null then
    return query select * from treadle.why_ended(v_task, v_now);
    return;
  elsif v_task.claim_token is not null then
    return query select * from treadle.why_claimed(v_task, v_now);
    return;
  end if;

  if v_task.queue = 'work' and v_task.status in ('created', 'ready', 'blocked') then
    return query select * from treadle.why_work(v_task);
    return;
  end if;

  select lanes.* into v_lane from treadle.lanes where lanes.id = v_task.lane_id;
  return query select * from treadle.why_waiting(v_task, v_now);
  v_said := found;
  return query select * from treadle.why_lane(v_lane, v_now);
  v_said := v_said or found;
  return query select * from treadle.why_rates(v_task, v_lane, v_now);
  v_said := v_said or found;
  return query select * from treadle.why_money(v_task, v_now);
  v_said := v_said or found;
  return query select * from treadle.why_purses(v_task, v_lane, v_now);
  v_said := v_said or found;
  if v_task.status = 'ready' then
    return query select * from treadle.why_turn(v_task, v_lane, v_now);
    v_said := v_said or found;
  end if;

  if not v_said then
    sentence := format('it is %s, and nothing is known that it waits for', v_task.status);
    reason := 'unknown';
    detail := jsonb_build_object('status', v_task.status);
    return next;
  end if;
end;
$$;

comment on function treadle.why(uuid) is
'Every reason why a task is not running now: a sentence, a code, until when, and the details.';

revoke all on function treadle.why(uuid) from public;
grant execute on function treadle.why(uuid) to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
