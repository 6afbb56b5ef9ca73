-- try_update_work_item: change a work item, and return it as this call left it.
--
-- select status, problem from treadle.try_update_work_item(id, '{"status": "dispatched"}');
--
-- If the state does not allow the change, problem says why, the other columns are null, and nothing
-- was changed.
--
-- Concurrency: as update_work_item. The item is read while it is locked, so that a concurrent
-- change is not shown.
-- Lock order:  as update_work_item.
-- Raises:      TR001 invalid argument, TR215 work item not found.

create or replace function treadle.try_update_work_item(
  p_id            uuid,
  p_changes       jsonb,
  p_actor         text default null,
  p_acting_agent  text default null,
  p_stale_s       double precision default 1800
)
returns table (
  id uuid, project_id uuid, project text, type text, description text, payload jsonb,
  priority integer, status text, assigned_agent text, created_by text, created_at timestamptz,
  updated_at timestamptz, completed_at timestamptz, outcome text, notes text, problem jsonb
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_detail text;
  v_hint   text;
begin
  perform treadle.update_work_item(p_id, p_changes, p_actor, p_acting_agent, p_stale_s);
  return query
  select
    work_items.id, work_items.project_id, work_items.project, work_items.type,
    work_items.description, work_items.payload, work_items.priority, work_items.status,
    work_items.assigned_agent, work_items.created_by, work_items.created_at,
    work_items.updated_at, work_items.completed_at, work_items.outcome, work_items.notes,
    null::jsonb
  from treadle.work_items
  where work_items.id = p_id;
exception
  when sqlstate 'TR101' or sqlstate 'TR102' or sqlstate 'TR108' then
    get stacked diagnostics v_detail = pg_exception_detail, v_hint = pg_exception_hint;
    problem := treadle.problem(sqlstate, sqlerrm, v_detail, v_hint);
    return next;
end;
$$;

comment on function treadle.try_update_work_item(uuid, jsonb, text, text, double precision) is
'Change a work item; returns it as this call left it, or the problem if its state forbids that.';

grant execute on function
treadle.try_update_work_item(uuid, jsonb, text, text, double precision) to
treadle_worker, treadle_operator;
