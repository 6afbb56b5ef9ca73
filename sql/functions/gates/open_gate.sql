-- open_gate: open a gate, so that its tasks can start, including those delayed by a rate limit.
--
-- Concurrency: one gate; locked tasks are skipped.
-- Lock order:  tasks (skips locked rows), gates.
-- Raises:      TR209 unknown gate.

create or replace function treadle.open_gate(p_key text, p_actor text default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now    timestamptz := treadle.clock();
  v_closed boolean;
begin
  if treadle.is_gate(p_key) is not true then
    perform treadle.raise_gate_not_found(p_key);
  end if;
  v_closed := exists (
    select from treadle.gates where gates.key = p_key and gates.closed_until > v_now
  );
  -- Tasks are locked before gates. A session that holds a task will move it on.
  update treadle.tasks
  set retry_at = v_now
  where
    v_closed
    and tasks.id = any (
      array(
        select waiting.id
        from treadle.tasks as waiting
        inner join treadle.lanes on waiting.lane_id = lanes.id
        where
          waiting.status = 'retrying' and waiting.failure_class = 'rate_limit'
          and waiting.retry_at > v_now and p_key = any (lanes.gates)
        for no key update of waiting skip locked
      )
    );
  update treadle.gates
  set
    closed_until = null, closed_at = null, closed_by = null, reason = null, slowed_until = null,
    slowdowns = 0
  where gates.key = p_key;
  if v_closed then
    insert into treadle.events (at, kind, actor, data)
    values (
      v_now, 'gate.opened', coalesce(p_actor, session_user), jsonb_build_object('key', p_key)
    );
    perform treadle.notify_promoter(v_now);
    perform treadle.notify_gate_queues(array[p_key]);
  end if;
  return v_closed;
end;
$$;

comment on function treadle.open_gate(text, text) is
'Open a gate before its time; returns whether it was closed.';

grant execute on function treadle.open_gate(text, text) to treadle_operator;
