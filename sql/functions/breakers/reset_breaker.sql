-- reset_breaker: close the breaker of a type manually and clear its failures.
--
-- Lock order:  breakers.
-- Raises:      TR203 unknown type.

-- close_breaker: close a breaker, emit an event and notify waiting workers.
--
-- opened_at is kept: attempts claimed before that time do not count against the breaker.
--
-- Concurrency: the caller has locked the breaker.
-- Lock order:  breakers.
create or replace function treadle.close_breaker(
  p_type   text,
  p_why    text,
  p_actor  text,
  p_now    timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  update treadle.breakers
  set state = 'closed', failures = 0, probe_at = null, probe_task = null, probe_token = null
  where breakers.type = p_type;
  insert into treadle.events (at, kind, actor, data)
  values (
    p_now, 'breaker.closed', p_actor, jsonb_build_object('type', p_type, 'why', p_why)
  );
  perform treadle.notify_gate_queues(array['type:' || p_type]);
end;
$$;

create or replace function treadle.reset_breaker(p_type text, p_actor text default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_state text;
begin
  perform treadle.check_names('default', p_type);
  select breakers.state into v_state from treadle.breakers
  where breakers.type = p_type
  for no key update;
  if v_state <> 'closed' then
    perform treadle.close_breaker(
      p_type, 'reset', coalesce(p_actor, session_user), treadle.clock()
    );
    return true;
  end if;
  update treadle.breakers set failures = 0 where breakers.type = p_type;
  return false;
end;
$$;

comment on function treadle.reset_breaker(text, text) is
'Close the breaker of a type; returns whether it was open.';

grant execute on function treadle.reset_breaker(text, text) to treadle_operator;
