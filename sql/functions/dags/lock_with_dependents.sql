-- lock_with_dependents: lock tasks that are to end, and who waits for them, as one ordered set.
--
-- Does nothing for tasks that nobody waits for: those are locked where they are updated.
--
-- Concurrency: a dependent that is added meanwhile is locked later, by meet_edges.
-- Lock order:  tasks, by id.
-- Raises:      nothing.

create or replace function treadle.lock_with_dependents(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = ''
as $$
begin
  if exists (
    select from treadle.dependencies
    where dependencies.depends_on = any (p_ids) and dependencies.met_at is null
  ) then
    perform treadle.lock_tasks(p_ids || treadle.dependents_of(p_ids));
  end if;
end;
$$;

comment on function treadle.lock_with_dependents(uuid[]) is
'Internal: keeps the order of locks where a task and its dependents are touched.';

revoke all on function treadle.lock_with_dependents(uuid[]) from public;
