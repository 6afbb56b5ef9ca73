-- cap_tasks: mark the tasks of a queue that count in its depth while they wait, or unmark them.
--
-- Those in flight too: they count once they come back.
--
-- Concurrency: tasks are locked in id order, in batches; it waits for who has one.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.cap_tasks(p_queue text, p_capped boolean)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_last uuid := '00000000-0000-0000-0000-000000000000';
  v_ids  uuid[];
begin
  loop
    v_ids := array(
      select tasks.id
      from treadle.tasks
      where
        tasks.queue = p_queue and tasks.completed_at is null and tasks.capped <> p_capped
        and tasks.id > v_last
      order by tasks.id
      limit 10000
    );
    exit when v_ids = '{}';
    perform treadle.lock_tasks(v_ids);
    update treadle.tasks
    set capped = p_capped
    where tasks.id = any (v_ids) and tasks.completed_at is null;
    v_last := v_ids[cardinality(v_ids)];
  end loop;
end;
$$;

comment on function treadle.cap_tasks(text, boolean) is
'Internal: lets the tasks of a queue count in its depth, or no more.';

revoke all on function treadle.cap_tasks(text, boolean) from public;
