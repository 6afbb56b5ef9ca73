-- entry_slot: how a task that waits for nothing else stands with the slot of its key.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.entry_slot(p_key text, p_slot text)
returns text
language sql
immutable
parallel safe
return case when p_key is null or p_slot = 'held' then p_slot else 'waiting' end;

comment on function treadle.entry_slot(text, text) is
'Internal: held where it is, else waiting; empty for a task without a key.';

revoke all on function treadle.entry_slot(text, text) from public;
