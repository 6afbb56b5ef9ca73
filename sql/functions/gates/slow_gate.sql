-- slow_gate: close a gate after a rate limit.
--
-- Concurrency: the gate is written: a transaction with an older snapshot fails.
-- Lock order:  gates.
-- Raises:      nothing.

create or replace function treadle.slow_gate(
  p_key      text,
  p_after_s  double precision,
  p_task     uuid,
  p_agent    text,
  p_now      timestamptz
)
returns timestamptz
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gate  treadle.gates;
  v_new   boolean;
  v_until timestamptz;
begin
  insert into treadle.gates (key) values (p_key) on conflict (key) do nothing;
  select gates.* into v_gate from treadle.gates where gates.key = p_key for no key update;
  -- Of many attempts that were under way when it closed, each has only the same to tell.
  v_new := not coalesce(v_gate.slowed_until > p_now, false);
  v_until := greatest(
    v_gate.closed_until,
    case
      when p_after_s >= 0 and p_after_s < 'NaN'
        then p_now + make_interval(secs => least(p_after_s, 86400))
      when v_new then p_now + make_interval(secs => treadle.slowdown_s(v_gate.slowdowns + 1))
    end
  );
  if not v_new and v_until is not distinct from v_gate.closed_until then
    return v_until;
  end if;

  update treadle.gates
  set
    closed_until = v_until,
    closed_at = p_now,
    closed_by = p_agent,
    reason = 'slowed down by a rate limit',
    slowed_until = v_until,
    slowdowns = gates.slowdowns + v_new::integer
  where gates.key = p_key;
  if v_until > p_now then
    insert into treadle.events (at, kind, actor, data)
    values (
      p_now, 'gate.closed', p_agent,
      jsonb_build_object(
        'key', p_key, 'until', v_until, 'reason', 'slowed down by a rate limit',
        'task_id', p_task, 'slowdowns', v_gate.slowdowns + v_new::integer
      )
    );
    perform treadle.tell_slowdown(p_key, v_until, p_now);
  end if;
  return v_until;
end;
$$;

comment on function treadle.slow_gate(text, double precision, uuid, text, timestamptz) is
'Internal: closes a gate for as long as was asked for, or longer each time; returns until when.';

revoke all on function treadle.slow_gate(text, double precision, uuid, text, timestamptz)
from public;
