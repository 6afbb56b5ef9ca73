-- interrupt_actions: end the runs of actions whose harness process has stopped.
--
-- It is unknown how far such an action came. If its callback is safe to repeat, it waits to be
-- executed again, up to p_max_tries. Otherwise it is interrupted, and runs again only if an
-- operator decides so; see rerun_action and skip_action. Returns the new status of each.
--
-- Concurrency: skips locked rows.
-- Lock order:  harness_actions.

create or replace function treadle.interrupt_actions(
  p_limit      integer default 100,
  p_max_tries  integer default 3
)
returns table (id uuid, status text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := treadle.clock();
begin
  perform treadle.ensure_durable();
  for id, status in
    select
      stopped.task_id,
      case
        when stopped.redeliver and stopped.tries < p_max_tries then 'waiting' else 'interrupted'
      end
    from treadle.harness_actions as stopped
    where stopped.status = 'executing' and stopped.lease_until < v_now
    order by stopped.task_id
    limit p_limit
    for update skip locked
  loop
    update treadle.harness_actions
    set
      status = interrupt_actions.status,
      lease_until = null,
      next_try_at = case when interrupt_actions.status = 'waiting' then v_now end,
      ended_at = case when interrupt_actions.status = 'interrupted' then v_now end,
      error = 'the harness stopped; it is unknown how far the action came'
    where harness_actions.task_id = interrupt_actions.id;
    perform treadle.emit_action_event(
      interrupt_actions.id, interrupt_actions.status, null, 'the harness stopped'
    );
    return next;
  end loop;
end;
$$;

comment on function treadle.interrupt_actions(integer, integer) is
'End runs of actions whose harness sent no heartbeat: interrupted, or waiting to be run again.';

grant execute on function treadle.interrupt_actions(integer, integer) to treadle_producer;
