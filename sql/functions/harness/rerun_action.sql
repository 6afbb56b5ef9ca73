-- rerun_action: an operator has an action executed again that failed or was interrupted.
--
-- Who does so has looked whether it took effect: nothing here can know.
--
-- Concurrency: the rows are locked, then judged. An ending that comes late changes nothing.
-- Lock order:  tasks, harness_actions.
-- Raises:      TR102 illegal transition, TR201 task not found.

create or replace function treadle.rerun_action(
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
begin
  perform treadle.hold_action(p_id, 'waiting');
  update treadle.harness_actions
  set
    status = 'waiting', tries = 0, lease_until = null, ended_at = null,
    next_try_at = treadle.clock()
  where harness_actions.task_id = p_id;
  perform treadle.tell_action(p_id, 'rerun', p_actor, p_note);
  perform treadle.wake_harness();
  return 'waiting';
end;
$$;

comment on function treadle.rerun_action(uuid, text, text) is
'Execute an action of the harness again that failed or was interrupted.';

revoke all on function treadle.rerun_action(uuid, text, text) from public;
grant execute on function treadle.rerun_action(uuid, text, text) to treadle_operator;
