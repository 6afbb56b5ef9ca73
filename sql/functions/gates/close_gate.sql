-- close_gate: prevent tasks behind a gate from starting, for some seconds or until a given time.
--
-- select treadle.close_gate('anthropic', 600, 'maintenance');
--
-- Concurrency: a claim in progress may still take tasks behind the gate.
-- Lock order:  gates.
-- Raises:      TR001 invalid argument, TR209 unknown gate.

-- notify_slowdown: notify all workers that a gate is closed.
--
-- The payload has seconds as well, for workers whose clock differs.
--
-- Concurrency: the notification is a hint; claims check the gate.
create or replace function treadle.notify_slowdown(
  p_key    text,
  p_until  timestamptz,
  p_now    timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_notify(
    'treadle_slowdown',
    jsonb_build_object(
      'key', p_key, 'until', p_until, 'in_s', extract(epoch from p_until - p_now)
    )::text
  );
  perform treadle.notify_promoter(p_until);
end;
$$;

create or replace function treadle.close_gate(
  p_key      text,
  p_seconds  double precision default null,
  p_reason   text default null,
  p_actor    text default null,
  p_until    timestamptz default null
)
returns timestamptz
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now   timestamptz := treadle.clock();
  v_until timestamptz := p_until;
begin
  if treadle.is_gate(p_key) is not true then
    perform treadle.raise_gate_not_found(p_key);
  end if;
  if num_nonnulls(p_seconds, p_until) <> 1
    or not coalesce(p_seconds between 0.001 and 315360000, true)
    or not coalesce(p_until > v_now and p_until < v_now + interval '10 years', true) then
    perform treadle.raise_error(
      format('gate %s cannot be closed for that time', quote_literal(left(p_key, 60))),
      jsonb_build_object('argument', case when p_until is null then 'seconds' else 'until' end),
      'Pass more than 0 seconds or a future time, at most ten years ahead.'
    );
  end if;
  v_until := coalesce(p_until, v_now + make_interval(secs => p_seconds));

  insert into treadle.gates (key) values (p_key) on conflict (key) do nothing;
  update treadle.gates
  set
    closed_until = v_until,
    closed_at = v_now,
    closed_by = coalesce(p_actor, session_user),
    reason = left(coalesce(p_reason, 'closed manually'), 500),
    slowed_until = null
  where gates.key = p_key;
  insert into treadle.events (at, kind, actor, data)
  values (
    v_now, 'gate.closed', coalesce(p_actor, session_user),
    jsonb_build_object('key', p_key, 'until', v_until, 'reason', p_reason)
  );
  perform treadle.notify_slowdown(p_key, v_until, v_now);
  return v_until;
end;
$$;

comment on function treadle.close_gate(text, double precision, text, text, timestamptz) is
'Close a gate for a while; running tasks go on. Returns until when it is closed.';

grant execute on function treadle.close_gate(text, double precision, text, text, timestamptz)
to treadle_operator;
