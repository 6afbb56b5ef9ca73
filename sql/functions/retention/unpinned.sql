-- unpinned: those of a set that may go together, without the ones that must stay.
--
-- Each one that stays may be the reason for another to stay.
--
-- Concurrency: reads; exact where the caller holds the set.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.unpinned(p_ids uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids    uuid[] := p_ids;
  v_pinned uuid[];
begin
  while v_ids <> '{}' loop
    v_pinned := treadle.pinned_tasks(v_ids);
    exit when v_pinned = '{}';
    v_ids := array(
      select given.id from unnest(v_ids) as given (id) where given.id <> all (v_pinned)
    );
  end loop;
  return v_ids;
end;
$$;

comment on function treadle.unpinned(uuid[]) is
'Internal: finished tasks that nobody needs any more.';

revoke all on function treadle.unpinned(uuid[]) from public;
