-- lock_gates: lock gates for counting, in order of key; says which it has.
--
-- Concurrency: whoever counts the use of a gate holds it until its transaction ends.
-- Lock order:  gates, by key.
-- Raises:      nothing.

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
  -- Written, not only locked: a transaction with an older snapshot fails instead of overrunning.
  update treadle.gates set touched = gates.touched + 1 where gates.key = any (v_keys);
  return v_keys;
end;
$$;

comment on function treadle.lock_gates(text[], boolean) is
'Internal: locks gates whose use is counted; with p_wait false those that are free.';

revoke all on function treadle.lock_gates(text[], boolean) from public;
