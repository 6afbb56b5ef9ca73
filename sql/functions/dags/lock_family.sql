-- lock_family: lock tasks, all that would fall with them, and who waits for those.
--
-- Returns what it has locked.
--
-- Concurrency: when the family has grown by the time it is locked, it lets go and starts again with
--              all of it, so that the order of locks holds.
-- Lock order:  tasks, by id.
-- Raises:      nothing.

create or replace function treadle.lock_family(p_ids uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_family uuid[] := treadle.family_of(p_ids);
  v_now    uuid[];
begin
  loop
    begin
      perform treadle.lock_tasks(v_family);
      v_now := treadle.family_of(p_ids);
      if exists (
        select grown.id from unnest(v_now) as grown (id)
        except
        select locked.id from unnest(v_family) as locked (id)
      ) then
        raise exception using errcode = 'TR999', message = 'a task was added';
      end if;
      return v_family;
    exception
      when sqlstate 'TR999' then
        v_family := v_now;
    end;
  end loop;
end;
$$;

comment on function treadle.lock_family(uuid[]) is
'Internal: locks the tasks that a cancellation touches.';

revoke all on function treadle.lock_family(uuid[]) from public;
