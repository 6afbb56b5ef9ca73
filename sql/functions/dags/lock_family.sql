-- lock_family: lock tasks, all that would fall with them, and who waits for those.
--
-- Returns what it has locked.
--
-- Concurrency: reads, locks and reads again until nothing was added in between.
-- Lock order:  tasks, by id.
-- Raises:      nothing.

create or replace function treadle.lock_family(p_ids uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = ''
as $$
declare
  v_family uuid[];
  v_locked uuid[] := '{}';
begin
  loop
    v_family := treadle.downstream_of(p_ids || treadle.dependents_of(p_ids));
    v_family := p_ids || v_family || treadle.dependents_of(p_ids || v_family);
    if not exists (
      select family.id from unnest(v_family) as family (id)
      except
      select locked.id from unnest(v_locked) as locked (id)
    ) then
      return v_locked;
    end if;
    perform treadle.lock_tasks(v_family);
    v_locked := v_family;
  end loop;
end;
$$;

comment on function treadle.lock_family(uuid[]) is
'Internal: locks the tasks that a cancellation touches.';

revoke all on function treadle.lock_family(uuid[]) from public;
