-- judge_work: refuse changes that do not fit the work item as it is now.
--
-- The rules about states are rows of work_transitions. Besides: an outcome is that of the state,
-- an item in progress is not given to another agent, and who takes an item that is taken is told
-- so. To say again what is so already is no error anywhere else.
--
-- Concurrency: the caller holds the item.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR101 claim lost, TR102 illegal transition.

create or replace function treadle.judge_work(
  p_task     treadle.tasks,
  p_changes  jsonb,
  p_as       text
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_from  text := treadle.work_status(p_task.status);
  v_to    text := coalesce(p_changes ->> 'status', v_from);
  v_agent text := coalesce(p_changes ->> 'assigned_agent', p_task.assigned_agent);
  v_needs text;
  v_given jsonb := p_changes || jsonb_build_object('assigned_agent', v_agent);
begin
  if p_as is not null and p_task.assigned_agent is distinct from p_as then
    perform treadle.refuse(
      format('work item %s is not assigned to %s', p_task.id, p_as),
      jsonb_build_object('work_item_id', p_task.id), 'Ask for your items again.', 'TR101'
    );
  end if;
  if (p_changes ->> 'unless_updated_since')::timestamptz < (
    select max(work_log.at) from treadle.work_log where work_log.task_id = p_task.id
  ) then
    perform treadle.refuse_work(
      p_task.id, v_from, v_to, format('work item %s has changed since it was read', p_task.id)
    );
  end if;

  select work_transitions.needs
  into v_needs
  from treadle.work_transitions
  where work_transitions.from_status = v_from and work_transitions.to_status = v_to;
  if not found and v_to <> v_from then
    perform treadle.refuse_work(p_task.id, v_from, v_to);
  elsif v_from = 'in_progress' and p_changes ->> 'status' = v_from
    and coalesce(p_changes ->> 'notes' = p_task.notes, not p_changes ? 'notes') then
    perform treadle.refuse_work(
      p_task.id, v_from, v_to, format('work item %s is in progress already', p_task.id)
    );
  elsif v_agent is distinct from p_task.assigned_agent
    and v_from not in ('queued', 'dispatched', 'blocked') then
    perform treadle.refuse_work(
      p_task.id, v_from, v_to,
      format(
        'work item %s is %s with %s and not given to %s', p_task.id, v_from,
        p_task.assigned_agent, v_agent
      )
    );
  end if;

  if v_needs is not null and coalesce(v_given ->> v_needs, '') !~ '\S' then
    perform treadle.refuse(
      format('a work item does not become %s without %s', v_to, v_needs),
      jsonb_build_object('argument', v_needs), format('Send %s, too.', v_needs)
    );
  elsif p_changes ->> 'outcome' <> coalesce(treadle.work_outcome(v_to), '') then
    perform treadle.refuse(
      format(
        '%s is not the outcome of an item that is %s', treadle.excerpt(p_changes -> 'outcome'), v_to
      ),
      jsonb_build_object('argument', 'outcome'),
      'Completed items have the outcome success, failed ones failed, cancelled ones cancelled.'
    );
  end if;
end;
$$;

comment on function treadle.judge_work(treadle.tasks, jsonb, text) is
'Internal: raises for changes that the state of a work item does not allow.';

revoke all on function treadle.judge_work(treadle.tasks, jsonb, text) from public;
