-- reopen_gates: open gates whose time has passed, and notify workers that wait for them or for a
-- probe.
--
-- Claims do not depend on this function, since they compare times. It sends notifications and
-- writes events.
--
-- Concurrency: locked gates are left to the next call.
-- Lock order:  gates (skips locked rows).

-- notify_gate_queues: notify idle workers of queues that have tasks behind gates.
--
-- Concurrency: the notification is a hint; see notify_workers.
create or replace function treadle.notify_gate_queues(p_keys text[])
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select treadle.notify_workers(
    array(select distinct lanes.queue from treadle.lanes where lanes.gates && p_keys)
  )
$$;

create or replace function treadle.reopen_gates()
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now  timestamptz := treadle.clock();
  v_open treadle.gates[];
  v_due  text[];
begin
  with due as materialized (
    select gates.*
    from treadle.gates
    where gates.closed_until <= v_now
    order by gates.key
    for no key update skip locked
  ),

  opened as (
    update treadle.gates
    set closed_until = null, closed_at = null, closed_by = null, reason = null
    where gates.key = any (array(select due.key from due))
  )

  select array_agg(due::treadle.gates) into v_open from due;

  insert into treadle.events (at, kind, data)
  select v_now, 'gate.opened', jsonb_build_object('key', gate.key)
  from unnest(v_open) as gate
  where gate.closed_by is not null;

  v_due := array(
    select 'type:' || breakers.type
    from treadle.breakers
    where breakers.state = 'open' and breakers.probe_at <= v_now
  );
  if v_open is not null or v_due <> '{}' then
    perform treadle.notify_gate_queues(v_due || array(select gate.key from unnest(v_open) as gate));
  end if;
  return coalesce(cardinality(v_open), 0);
end;
$$;

comment on function treadle.reopen_gates() is
'Open gates whose time has passed and notify waiting workers; returns how many were opened.';

grant execute on function treadle.reopen_gates() to treadle_worker;
