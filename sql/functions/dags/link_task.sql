-- link_task: make a task depend on others that exist; returns how many of them hold it back.
--
-- An edge onto a task that waits for nothing cannot close a circle: to make it wait somebody would
-- have to lock it first. All others are checked one after the other, each seeing those before.
--
-- Concurrency: the caller holds the task and what it is to depend on, as one ordered set.
-- Lock order:  locks (after tasks).
-- Raises:      TR102 illegal transition, TR103 cycle.

create or replace function treadle.link_task(
  p_task      uuid,
  p_on        uuid[],
  p_optional  boolean,
  p_policy    text,
  p_now       timestamptz
)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_left integer;
begin
  if p_task = any (p_on) or exists (
    select from treadle.tasks where tasks.id = any (p_on) and tasks.blocked_count > 0
  ) then
    insert into treadle.locks (name) values ('edges')
    on conflict (name) do update set touched = locks.touched + 1;
    perform treadle.check_circle(p_task, p_on);
  end if;

  with added as (
    insert into treadle.dependencies (task_id, depends_on, optional, on_dead_letter, met_at)
    select
      p_task, wanted.id, p_optional, treadle.edge_policy(p_policy, p_optional),
      treadle.met_since(wanted.id, p_optional, p_policy, p_now)
    from (select distinct given.id from unnest(p_on) as given (id)) as wanted
    on conflict (depends_on, task_id) do nothing
    returning dependencies.met_at
  )

  select count(*) into v_left from added where added.met_at is null;
  perform treadle.raise_paths(
    p_on, array_fill(tasks.critical_path + 1, array[cardinality(p_on)])
  )
  from treadle.tasks
  where tasks.id = p_task and v_left > 0;
  return v_left;
end;
$$;

comment on function treadle.link_task(uuid, uuid[], boolean, text, timestamptz) is
'Internal: adds edges from a task to others, unless they would close a circle.';

revoke all on function treadle.link_task(uuid, uuid[], boolean, text, timestamptz) from public;
