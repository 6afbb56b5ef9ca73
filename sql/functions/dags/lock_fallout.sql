-- lock_fallout: before attempts fail, lock what falls should that be their end.
--
-- Dependents that wait for a person, which is the default, are left alone.
--
-- Concurrency: when such a dependent has come by the time the tasks are locked, it lets go and
--              starts again.
-- Lock order:  tasks, dags, each by id.
-- Raises:      nothing.

create or replace function treadle.lock_fallout(p_ids uuid[], p_cancels boolean)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not p_cancels and not treadle.has_fallout(p_ids) then
    if not exists (
      select from treadle.tasks
      where tasks.id = any (p_ids) and num_nonnulls(tasks.dag_id, tasks.parent_id) > 0
    ) then
      return;
    end if;
    begin
      perform treadle.lock_tasks(p_ids);
      if treadle.has_fallout(p_ids) then
        raise exception using errcode = 'TR999', message = 'a dependent was added';
      end if;
      return;
    exception
      when sqlstate 'TR999' then
        null;
    end;
  end if;
  perform treadle.lock_downstream(p_ids);
end;
$$;

comment on function treadle.lock_fallout(uuid[], boolean) is
'Internal: keeps the order of locks where a failure may take other tasks along.';

revoke all on function treadle.lock_fallout(uuid[], boolean) from public;
