-- entry_status: the state of a task that waits for nothing but, where it has a key, its slot.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.entry_status(p_key text, p_slot text)
returns text
language sql
immutable
parallel safe
return case when p_key is null or p_slot = 'held' then 'ready' else 'pending' end;

comment on function treadle.entry_status(text, text) is
'Internal: ready, or pending where a slot has to be given first.';

revoke all on function treadle.entry_status(text, text) from public;
