-- gate_use: count the use of gates that have a rate limit.

-- gate_slot: return the number of the sixtieth of a period that a time falls into, counted from
-- 1970.
create or replace function treadle.gate_slot(p_at timestamptz, p_period_s double precision)
returns bigint
language sql
immutable
parallel safe
return floor(extract(epoch from p_at) * 60 / p_period_s::numeric)::bigint;

-- tokens_of: return the tokens that a task has used so far.
create or replace function treadle.tokens_of(p_task uuid)
returns bigint
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(sum(spend.input_tokens + spend.output_tokens), 0)::bigint
  from treadle.spend
  where spend.task_id = p_task
$$;

-- tokens_left: return the tokens that a task may still use; 0 without a limit.
create or replace function treadle.tokens_left(p_task uuid)
returns bigint
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_max bigint := (
    select task_options.max_tokens from treadle.task_options where task_options.task_id = p_task
  );
begin
  return case when v_max is null then 0 else greatest(v_max - treadle.tokens_of(p_task), 0) end;
end;
$$;

-- gate_need: return how much of a limit a task uses when it is claimed.
create or replace function treadle.gate_need(p_task treadle.tasks, p_unit text)
returns numeric
language sql
stable
return case p_unit
  when 'starts' then 1
  when 'tokens' then case when p_task.has_options then treadle.tokens_left(p_task.id) else 0 end
  else greatest(coalesce(p_task.max_cost_usd - p_task.cost_usd, 0), 0)
end;

-- gate_room: return what is left of each limit; null if the gate is closed.
--
-- Sixtieths are counted as a whole, including the one that lies a full period ago, so that no
-- window of one period exceeds the limit.
--
-- Concurrency: the caller has locked the gates and reads in a separate statement.
create or replace function treadle.gate_room(p_keys text[], p_now timestamptz)
returns numeric[]
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select
      case
        when gates.closed_until > p_now then null
        else gates.amount - (
          select coalesce(sum(gate_uses.amount), 0)
          from treadle.gate_uses
          where
            gate_uses.key = gates.key
            and gate_uses.slot >= treadle.gate_slot(p_now, gates.period_s) - 60
        )
      end
    from unnest(p_keys) with ordinality as given (key, at)
    inner join treadle.gates on given.key = gates.key
    order by given.at
  )
$$;

-- next_room_at: return when a limit has room for an amount again.
--
-- Concurrency: the caller has locked the gate.
create or replace function treadle.next_room_at(
  p_key   text,
  p_need  numeric,
  p_new   numeric,
  p_now   timestamptz
)
returns timestamptz
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    -- A little later, so that rounding cannot place it inside the sixtieth.
    to_timestamp((min(used.slot) + 61) * gate.period_s / 60) + interval '10 microseconds'
  from treadle.gates as gate
  cross join lateral (
    select
      uses.slot,
      sum(uses.amount) over () - sum(uses.amount) over (order by uses.slot) as stays
    from (
      select gate_uses.slot, gate_uses.amount
      from treadle.gate_uses
      where
        gate_uses.key = gate.key
        and gate_uses.slot >= treadle.gate_slot(p_now, gate.period_s) - 60
      union all
      select treadle.gate_slot(p_now, gate.period_s), p_new
    ) as uses
  ) as used
  where
    gate.key = p_key
    and used.stays < gate.amount
    and used.stays + p_need <= gate.amount
  group by gate.period_s
$$;

-- lock_gates: lock gates for counting, in order of key; returns those that were locked.
--
-- Concurrency: a session that counts the use of a gate keeps it locked until its transaction ends.
-- Lock order:  gates, by key.
create or replace function treadle.lock_gates(p_keys text[], p_wait boolean)
returns text[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_keys text[];
begin
  if p_wait then
    v_keys := array(
      select gates.key from treadle.gates
      where gates.key = any (p_keys)
      order by gates.key
      for no key update
    );
  else
    v_keys := array(
      select gates.key from treadle.gates
      where gates.key = any (p_keys)
      order by gates.key
      for no key update skip locked
    );
  end if;
  -- Updated, not only locked, so that a transaction with an older snapshot fails instead of
  -- exceeding the limit.
  update treadle.gates set touched = gates.touched + 1 where gates.key = any (v_keys);
  return v_keys;
end;
$$;

-- record_gate_uses: record use of gates that have a rate limit.
--
-- Concurrency: the caller has locked the gates.
-- Lock order:  gate_uses.
create or replace function treadle.record_gate_uses(
  p_keys text[], p_amounts numeric[], p_now timestamptz
)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  insert into treadle.gate_uses (key, slot, amount)
  select gates.key, treadle.gate_slot(p_now, gates.period_s), sum(given.amount)
  from unnest(p_keys, p_amounts) as given (key, amount)
  inner join treadle.gates on given.key = gates.key
  where given.amount > 0 and gates.unit is not null
  group by gates.key
  order by gates.key
  on conflict (key, slot) do update set amount = gate_uses.amount + excluded.amount;

  delete from treadle.gate_uses
  using treadle.gates
  where
    gates.key = any (p_keys)
    and gate_uses.key = gates.key
    and gate_uses.slot < treadle.gate_slot(p_now, gates.period_s) - 60;
$$;

-- charge_gates: count claimed tasks at gates that have a rate limit.
--
-- Concurrency: the caller has locked the gates; see pass_gates.
-- Lock order:  gate_uses.
create or replace function treadle.charge_gates(p_rows tid[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  perform treadle.record_gate_uses(array_agg(gates.key), array_agg(used.amount), p_now)
  from treadle.tasks
  inner join treadle.lanes on tasks.lane_id = lanes.id
  inner join treadle.gates on gates.key = any (lanes.gates)
  cross join lateral (select treadle.gate_need(tasks, gates.unit) as amount) as used
  where tasks.ctid = any (p_rows) and gates.unit is not null
  having count(*) > 0;
end;
$$;

-- charge_spend: count what a task spent beyond what its claim was charged for.
--
-- A claim is charged what its task may still spend; a task without a limit is charged as it spends.
-- Called after the task was updated, with the additional cost.
--
-- Concurrency: the caller has locked the task.
-- Lock order:  gates by key, after tasks and budgets.
create or replace function treadle.charge_spend(p_task uuid, p_usd numeric, p_tokens numeric)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_task   treadle.tasks;
  v_max    bigint;
  v_usd    numeric;
  v_tokens numeric;
  v_keys   text[];
begin
  select tasks.* into v_task from treadle.tasks where tasks.id = p_task;
  -- The additional amount above what the claim was charged for.
  v_usd := least(p_usd, v_task.cost_usd - coalesce(v_task.max_cost_usd, 0));
  v_max := (treadle.options_of(v_task)).max_tokens;
  v_tokens := least(p_tokens, treadle.tokens_of(p_task) - v_max);
  v_keys := treadle.lock_gates(
    array(
      select gates.key
      from treadle.lanes
      inner join treadle.gates on gates.key = any (lanes.gates)
      where
        lanes.id = v_task.lane_id
        and ((gates.unit = 'usd' and v_usd > 0) or (gates.unit = 'tokens' and v_tokens > 0))
    ),
    true
  );
  perform treadle.record_gate_uses(
    array_agg(gates.key),
    array_agg(case gates.unit when 'usd' then v_usd else v_tokens end), treadle.clock()
  )
  from treadle.gates
  where gates.key = any (v_keys)
  having count(*) > 0;
end;
$$;
