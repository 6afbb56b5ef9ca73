-- interrupt_actions: mark actions as interrupted whose harness process has stopped.
--
-- It is unknown how far such an action came, so it runs again only if an operator decides so; see
-- rerun_action and skip_action.
--
-- Concurrency: skips locked rows.
-- Lock order:  harness_actions.

create or replace function treadle.interrupt_actions(p_limit integer default 100)
returns setof uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := treadle.clock();
  v_id  uuid;
begin
  perform treadle.ensure_durable();
  for v_id in
    select harness_actions.task_id
    from treadle.harness_actions
    where harness_actions.status = 'executing' and harness_actions.lease_until < v_now
    order by harness_actions.task_id
    limit p_limit
    for update skip locked
  loop
    update treadle.harness_actions
    set
      status = 'interrupted', lease_until = null, ended_at = v_now,
      error = 'the harness stopped; it is unknown how far the action came'
    where harness_actions.task_id = v_id;
    perform treadle.emit_action_event(v_id, 'interrupted', null, 'the harness stopped');
    return next v_id;
  end loop;
end;
$$;

comment on function treadle.interrupt_actions(integer) is
'Mark actions as interrupted whose harness sent no heartbeat; returns their tasks.';

grant execute on function treadle.interrupt_actions(integer) to treadle_producer;
