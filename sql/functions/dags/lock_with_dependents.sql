-- lock_with_dependents: lock tasks that are to end, and who waits for them, as one ordered set.
--
-- Tasks that nobody waits for, and that belong to no DAG and no parent, are locked where they are
-- updated: they hardly ever get a dependent in between, and meet_edges locks it then.
--
-- Concurrency: when a dependent has come by the time they are locked, it lets go and starts again.
-- Lock order:  tasks, by id.
-- Raises:      nothing.

create or replace function treadle.lock_with_dependents(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_next uuid[];
begin
  if not exists (
    select from treadle.tasks
    -- Not as conditions that an index could serve: the ids are to be looked up.
    where tasks.id = any (p_ids) and num_nonnulls(tasks.dag_id, tasks.parent_id) > 0
  ) and not exists (
    select from treadle.dependencies
    where dependencies.depends_on = any (p_ids) and dependencies.met_at is null
  ) then
    return;
  end if;

  loop
    v_next := treadle.dependents_of(p_ids);
    begin
      perform treadle.lock_tasks(p_ids || v_next);
      if exists (
        select grown.id from unnest(treadle.dependents_of(p_ids)) as grown (id)
        except
        select locked.id from unnest(v_next) as locked (id)
      ) then
        raise exception using errcode = 'TR999', message = 'a dependent was added';
      end if;
      return;
    exception
      when sqlstate 'TR999' then
        null;
    end;
  end loop;
end;
$$;

comment on function treadle.lock_with_dependents(uuid[]) is
'Internal: keeps the order of locks where a task and its dependents are touched.';

revoke all on function treadle.lock_with_dependents(uuid[]) from public;
