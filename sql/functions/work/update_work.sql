-- update_work: change a work item: its status, outcome, notes, assigned_agent.
--
-- select treadle.update_work(id, '{"status": "dispatched", "assigned_agent": "steve-w"}');
--
-- What may become what, and what has to be said with it, is in the view work_transitions. In
-- progress means claimed by the agent: each change renews the claim for p_stale_s, and without any
-- the reaper blocks the item. With unless_updated_since the item must not have changed since. p_as
-- is who acts, where that is to be the agent that has the item.
--
-- Concurrency: the item is locked, then judged; an agent has one item in progress at any time.
-- Lock order:  tasks, dags, lanes, then the history.
-- Raises:      TR001 invalid argument, TR101 claim lost, TR102 illegal transition, TR108 the agent
--              has another item, TR215 work item not found.

create or replace function treadle.update_work(
  p_id       uuid,
  p_changes  jsonb,
  p_actor    text default null,
  p_as       text default null,
  p_stale_s  double precision default 1800
)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now   timestamptz;
  v_task  treadle.tasks;
  v_from  text;
  v_to    text;
  v_agent text;
  v_notes text;
  v_moves boolean;
  v_given boolean;
begin
  perform treadle.check_work(p_changes, p_stale_s);
  perform treadle.keep_durable();
  v_task := treadle.hold_work(p_id, p_changes ->> 'status');
  v_now := treadle.clock();
  perform treadle.judge_work(v_task, p_changes, p_as);
  v_from := treadle.work_status(v_task.status);
  v_to := coalesce(p_changes ->> 'status', v_from);
  v_agent := coalesce(p_changes ->> 'assigned_agent', v_task.assigned_agent);
  v_notes := coalesce(p_changes ->> 'notes', v_task.notes);
  v_moves := v_to <> v_from;
  v_given := v_agent is distinct from v_task.assigned_agent;
  if not v_moves and not v_given and v_from <> 'in_progress'
    and v_notes is not distinct from v_task.notes then
    return p_id;
  end if;

  perform treadle.write_work(v_task, v_agent, v_notes, p_stale_s, v_now);
  if v_moves then
    perform treadle.move_work(
      v_task, v_to, v_agent, p_changes ->> 'notes', p_actor, p_stale_s, v_now
    );
  end if;
  -- A cancellation is written down by cancel_rows, whoever asked for it.
  if v_to <> 'cancelled' or not v_moves then
    perform treadle.log_work(
      p_id, p_actor, v_from, v_to, v_agent, p_changes ->> 'notes',
      v_to = 'dispatched' and v_moves or v_given and v_to <> 'queued',
      p_at => case when v_moves then coalesce(tasks.completed_at, v_now) else v_now end
    )
    from treadle.tasks
    where tasks.id = p_id;
  end if;
  return p_id;
end;
$$;

comment on function treadle.update_work(uuid, jsonb, text, text, double precision) is
'Change a work item, as far as its state allows.';

revoke all on function treadle.update_work(uuid, jsonb, text, text, double precision) from public;
grant execute on function
treadle.update_work(uuid, jsonb, text, text, double precision) to
treadle_worker, treadle_operator;
