-- define_gate: create a gate or change its limit; settings that are not given stay as they are.
--
-- select treadle.define_gate('anthropic', '{"limit": 50, "per_s": 60, "unit": "starts"}');
--
-- Returns whether the gate is new.
--
-- Concurrency: one row; claims that count at this gate wait.
-- Lock order:  gates, then the history.
-- Raises:      TR001 invalid argument.

-- is_gate: return whether a gate with this key exists, either defined or belonging to a type.
create or replace function treadle.is_gate(p_key text)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    p_key not like 'over:%'
    and (
      exists (select from treadle.gates where gates.key = p_key)
      or exists (select from treadle.task_types where 'type:' || task_types.name = p_key)
    )
$$;

-- check_gate: check the key and the limit of a gate.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_gate(
  p_key     text,
  p_unit    text,
  p_amount  numeric,
  p_per_s   double precision
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text := case
    when p_key is null or p_key !~ '^[A-Za-z0-9_.:/-]{1,105}$' or p_key like 'over:%'
      then 'a key has 1 to 105 letters, digits or _ . : / - and does not begin with over:'
    when p_key like 'type:%' and not treadle.is_gate(p_key)
      then 'a key that begins with type: needs a task type of this name'
    when p_amount is null and p_per_s is null and p_unit is null then null
    when p_amount is null then 'a period or a unit needs a limit'
    when p_per_s is null then 'a limit needs a period: per_s'
    when p_unit is null or p_unit not in ('starts', 'tokens', 'usd')
      then 'the unit must be starts, tokens or usd'
    when not (p_amount > 0 and p_amount < 1e12) then 'the limit must be above 0 and below 1e12'
    when p_unit = 'starts' and p_amount < 1 then 'the limit must be at least one start'
    when not p_per_s between 0.1 and 2678400
      then 'the period must be 0.1 seconds to 31 days'
  end;
begin
  if v_problem is not null then
    perform treadle.raise_error(
      format('gate %s cannot be defined: %s', left(quote_nullable(p_key), 60), v_problem),
      jsonb_build_object('argument', 'gate', 'gate', left(p_key, 200)),
      'For example: select treadle.define_gate(''anthropic'', '
      '''{"limit": 50, "per_s": 60, "unit": "starts"}'')'
    );
  end if;
end;
$$;

-- rescale_gate_use: adapt recorded uses and waiting tasks to a changed limit.
--
-- Concurrency: the caller has locked the gate.
-- Lock order:  gates, gate_uses.
create or replace function treadle.rescale_gate_use(
  p_old  treadle.gates,
  p_new  treadle.gates,
  p_now  timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_used numeric := (
    select coalesce(sum(gate_uses.amount), 0)
    from treadle.gate_uses
    where
      gate_uses.key = p_old.key
      and gate_uses.slot >= treadle.gate_slot(p_now, p_old.period_s) - 60
  );
begin
  if (p_old.unit, p_old.period_s) is distinct from (p_new.unit, p_new.period_s) then
    delete from treadle.gate_uses where gate_uses.key = p_old.key;
  end if;
  -- After a change of the period, all recorded use counts as made just now.
  if p_old.unit = p_new.unit and p_old.period_s <> p_new.period_s then
    perform treadle.record_gate_uses(array[p_new.key], array[v_used], p_now);
  end if;
  update treadle.gates
  set closed_until = null, closed_at = null, reason = null
  where gates.key = p_new.key and gates.closed_by is null;
  -- Lanes behind the old limit are reopened; their tasks are checked against the new limit.
  delete from treadle.gates where gates.key = format('over:%s:%s', p_old.amount, p_old.key);
  perform treadle.notify_gate_queues(array[p_new.key]);
end;
$$;

create or replace function treadle.define_gate(
  p_key       text,
  p_settings  jsonb default '{}',
  p_actor     text default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_made       boolean;
  v_old        treadle.gates;
  v_new        treadle.gates;
  v_unit       text;
  v_amount     numeric;
  v_per_s      double precision;
  v_constraint text;
  v_column     text;
begin
  perform treadle.check_settings(p_settings, array['limit', 'per_s', 'unit']);
  perform treadle.check_gate(p_key, null, null, null);
  insert into treadle.gates (key) values (p_key) on conflict (key) do nothing;
  v_made := found;
  select gates.* into v_old from treadle.gates where gates.key = p_key for no key update;
  if p_settings -> 'limit' is distinct from 'null' then
    v_amount := coalesce((p_settings ->> 'limit')::numeric, v_old.amount);
    v_per_s := coalesce((p_settings ->> 'per_s')::float8, v_old.period_s);
    v_unit := coalesce(
      p_settings ->> 'unit', v_old.unit, case when v_amount is not null then 'starts' end
    );
  end if;
  perform treadle.check_gate(p_key, v_unit, v_amount, v_per_s);

  update treadle.gates
  set unit = v_unit, amount = v_amount, period_s = v_per_s
  where
    gates.key = p_key
    and (gates.unit, gates.amount, gates.period_s) is distinct from (v_unit, v_amount, v_per_s)
  returning gates.* into v_new;
  if found then
    perform treadle.rescale_gate_use(v_old, v_new, treadle.clock());
  end if;
  if v_made or v_new.key is not null then
    insert into treadle.events (at, kind, actor, data)
    values (
      treadle.clock(), 'gate.defined', coalesce(p_actor, session_user),
      jsonb_build_object('key', p_key, 'settings', p_settings)
    );
  end if;
  return v_made;
exception
  when data_exception or check_violation then
    get stacked diagnostics v_constraint = constraint_name, v_column = column_name;
    perform treadle.raise_error(
      format(
        'gate %s cannot be defined: %s', left(quote_nullable(p_key), 60),
        treadle.constraint_message(sqlerrm, v_constraint, v_column)
      ),
      jsonb_build_object('argument', 'gate'), 'limit and per_s must be numbers, and unit a text.'
    );
end;
$$;

comment on function treadle.define_gate(text, jsonb, text) is
'Create a gate or change its limit: starts, tokens or usd per period; null removes the limit.';

-- raise_gate_not_found: raise the error for a gate that does not exist.
--
-- Raises:      TR209 unknown gate.
create or replace function treadle.raise_gate_not_found(p_key text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.raise_error(
    format('there is no gate %s', coalesce(quote_literal(left(p_key, 60)), 'null')),
    jsonb_build_object('argument', 'gates', 'gate', left(p_key, 200)),
    format(
      'Known gates: %s. To create one: select treadle.define_gate(''name'')',
      coalesce(
        nullif(
          array_to_string(
            array(
              select gates.key from treadle.gates
              where gates.key not like 'over:%'
              order by gates.key
              limit 10
            ),
            ', '
          ),
          ''
        ),
        'none'
      )
    ),
    'TR209'
  );
end;
$$;

grant execute on function treadle.define_gate(text, jsonb, text) to treadle_operator;
