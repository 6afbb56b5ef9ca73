-- numbered_name: the name of a project that is called like another: with the end of its id.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.numbered_name(p_name text, p_id uuid)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select p_name || ' #' || right(p_id::text, 8)
$$;

comment on function treadle.numbered_name(text, uuid) is
'Internal: a name for one of two projects that are called alike.';

revoke all on function treadle.numbered_name(text, uuid) from public;
