-- is_gate: whether a gate of this key is there: made by somebody, or that of a type.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.is_gate(text) is
'Internal: knows every gate, those of types without a row included.';

revoke all on function treadle.is_gate(text) from public;
