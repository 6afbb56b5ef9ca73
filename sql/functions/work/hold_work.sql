-- hold_work: lock a work item, and whatever its next state will touch.
--
-- Concurrency: waits for the item; what depends on it is locked with it, in id order.
-- Lock order:  tasks, dags.
-- Raises:      TR215 work item not found.

create or replace function treadle.hold_work(p_id uuid, p_to text)
returns treadle.tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task treadle.tasks;
begin
  if exists (select from treadle.tasks where tasks.id = p_id and tasks.queue = 'work') then
    case p_to
      when 'completed' then perform treadle.lock_with_dependents(array[p_id]);
      when 'failed' then perform treadle.lock_fallout(array[p_id], false);
      when 'cancelled' then perform treadle.lock_downstream(array[p_id]);
      else null;
    end case;
  end if;
  select tasks.*
  into v_task
  from treadle.tasks
  where tasks.id = p_id and tasks.queue = 'work'
  for no key update;
  if not found then
    perform treadle.refuse(
      format('there is no work item %s', coalesce(p_id::text, 'null')),
      jsonb_build_object('work_item_id', p_id),
      'List them: GET /work, or select * from treadle.work_items',
      'TR215'
    );
  end if;
  return v_task;
end;
$$;

comment on function treadle.hold_work(uuid, text) is
'Internal: the row of a work item, locked.';

revoke all on function treadle.hold_work(uuid, text) from public;
