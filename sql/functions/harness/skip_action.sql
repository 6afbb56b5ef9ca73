-- skip_action: mark an action as not needed, at the request of an operator; its task is done.
--
-- Concurrency: the rows are locked, then checked. A late result of an earlier run changes nothing.
-- Lock order:  tasks, harness_actions, results.
-- Raises:      TR102 illegal transition, TR201 task not found.

create or replace function treadle.skip_action(
  p_id     uuid,
  p_actor  text default null,
  p_note   text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_action treadle.harness_actions := treadle.lock_action(p_id, 'skipped');
begin
  update treadle.harness_actions
  set
    status = 'skipped', lease_until = null, next_try_at = null, ended_at = treadle.clock()
  where harness_actions.task_id = p_id;
  perform treadle.close_action(p_id, v_action.token);
  perform treadle.emit_action_event(p_id, 'skipped', p_actor, p_note);
  return 'skipped';
end;
$$;

comment on function treadle.skip_action(uuid, text, text) is
'Skip a harness action that failed or was interrupted: its task is done.';

grant execute on function treadle.skip_action(uuid, text, text) to treadle_operator;
