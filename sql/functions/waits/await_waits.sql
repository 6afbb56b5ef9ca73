-- await_waits: mark waits as those that a task gives up its claim for; returns how many are open.
--
-- Concurrency: the caller holds the task: nobody can end one of its waits meanwhile.
-- Lock order:  waits (after tasks).
-- Raises:      TR206 unknown wait.

create or replace function treadle.await_waits(p_task uuid, p_waits uuid[])
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other uuid;
  v_open  integer;
begin
  select given.id
  into v_other
  from unnest(p_waits) as given (id)
  where not exists (
    select from treadle.waits where waits.id = given.id and waits.task_id = p_task
  )
  limit 1;
  if found then
    perform treadle.refuse(
      format('task %s has no wait %s', p_task, coalesce(v_other::text, 'null')),
      jsonb_build_object('task_id', p_task, 'wait_id', v_other),
      'Open it first: treadle.open_wait returns its id.',
      'TR206'
    );
  end if;

  update treadle.waits
  set awaited = true
  where waits.id = any (p_waits) and waits.status = 'open';
  get diagnostics v_open = row_count;
  return v_open;
end;
$$;

comment on function treadle.await_waits(uuid, uuid[]) is
'Internal: counts the open ones among the waits of a task, and marks them.';

revoke all on function treadle.await_waits(uuid, uuid[]) from public;
