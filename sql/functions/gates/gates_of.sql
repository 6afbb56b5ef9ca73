-- gates_of: the keys of the gates before a task: those it names and that of its type, in order.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR209 unknown gate.

create or replace function treadle.gates_of(p_type text, p_gates text[])
returns text[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unknown text;
begin
  if coalesce(cardinality(p_gates), 0) = 0 then
    return array['type:' || p_type];
  end if;
  if cardinality(p_gates) > 10 then
    perform treadle.refuse(
      format('%s gates for one task', cardinality(p_gates)),
      jsonb_build_object('argument', 'gates'), 'Name at most 10.'
    );
  end if;
  select given.key
  into v_unknown
  from unnest(p_gates) as given (key)
  where treadle.is_gate(given.key) is not true
  limit 1;
  if found then
    perform treadle.refuse_gate(v_unknown);
  end if;
  return treadle.sorted(p_gates || ('type:' || p_type));
end;
$$;

comment on function treadle.gates_of(text, text[]) is
'Internal: the sorted gate keys of a lane; refuses a key that is not defined.';

revoke all on function treadle.gates_of(text, text[]) from public;
