-- define_gate: make a gate, or change its limit; what is not named stays as it is.
--
-- select treadle.define_gate('anthropic', '{"limit": 50, "per_s": 60, "unit": "starts"}');
--
-- Concurrency: one row; claims that count at it wait.
-- Lock order:  gates, then the history.
-- Raises:      TR001 invalid argument.

create or replace function treadle.define_gate(
  p_key       text,
  p_settings  jsonb default '{}',
  p_actor     text default null
)
returns void
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
    perform treadle.refit_gate(v_old, v_new, treadle.clock());
    v_made := true;
  end if;
  if v_made then
    insert into treadle.events (at, kind, actor, data)
    values (
      treadle.clock(), 'gate.defined', coalesce(p_actor, session_user),
      jsonb_build_object('key', p_key, 'settings', p_settings)
    );
  end if;
exception
  when data_exception or check_violation then
    get stacked diagnostics v_constraint = constraint_name, v_column = column_name;
    perform treadle.refuse(
      format(
        'gate %s cannot be defined so: %s', left(quote_nullable(p_key), 60),
        treadle.broken_rule(sqlerrm, v_constraint, v_column)
      ),
      jsonb_build_object('argument', 'gate'), 'limit and per_s are numbers, unit is a word.'
    );
end;
$$;

comment on function treadle.define_gate(text, jsonb, text) is
'Make a gate or change its limit: starts, tokens or usd per so many seconds; null is none.';

revoke all on function treadle.define_gate(text, jsonb, text) from public;
grant execute on function treadle.define_gate(text, jsonb, text) to treadle_operator;
