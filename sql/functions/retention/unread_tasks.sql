-- unread_tasks: those of a set of which a reader of the events has not seen all.
--
-- Filters and templates take what they need from the task and its DAG: both stay until then.
--
-- Concurrency: reads; a reader only ever goes on.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.unread_tasks(p_ids uuid[], p_dags uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_read treadle.event_readers := treadle.read_by_all();
begin
  if v_read.name = 'nobody' then
    return '{}';
  end if;
  return array(
    -- By the task first, and then by the place: what nobody has read may be long.
    with told as materialized (
      select events.task_id, events.dag_id, events.xid, events.id
      from treadle.events
      where events.task_id = any (p_ids)
      union all
      select events.task_id, events.dag_id, events.xid, events.id
      from treadle.events
      where events.dag_id = any (p_dags) and events.task_id is null
    ),

    unread as materialized (
      select told.task_id, told.dag_id
      from told
      where (told.xid, told.id) > (v_read.xid, v_read.id)
    )

    select unread.task_id
    from unread
    where unread.task_id is not null
    union
    select tasks.id
    from treadle.tasks
    where
      tasks.id = any (p_ids)
      and tasks.dag_id = any (
        array(select unread.dag_id from unread where unread.task_id is null)
      )
  );
end;
$$;

comment on function treadle.unread_tasks(uuid[], uuid[]) is
'Internal: finished tasks with events that are still to be read.';

revoke all on function treadle.unread_tasks(uuid[], uuid[]) from public;
