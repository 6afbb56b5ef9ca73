-- make_gates: make the gates that a type names, where they are missing.
--
-- Concurrency: two sessions that make the same gate: the second waits for the first.
-- Lock order:  gates by key.
-- Raises:      TR001 invalid argument.

create or replace function treadle.make_gates(p_keys text[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(p_keys) > 10 or array_position(p_keys, null) is not null then
    perform treadle.refuse(
      'gates must be up to 10 names', jsonb_build_object('argument', 'gates'),
      'For example ["anthropic"].'
    );
  end if;
  perform treadle.check_gate(given.key, null, null, null) from unnest(p_keys) as given (key);
  insert into treadle.gates (key)
  select distinct given.key from unnest(p_keys) as given (key)
  where not treadle.is_gate(given.key)
  order by given.key
  on conflict (key) do nothing;
end;
$$;

comment on function treadle.make_gates(text[]) is
'Internal: a gate that a type names exists, without a limit and open.';

revoke all on function treadle.make_gates(text[]) from public;
