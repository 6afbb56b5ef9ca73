-- interrupt_actions: actions whose harness is gone are interrupted: nobody knows how far they came.
--
-- They are not executed again unless an operator says so: see rerun_action and skip_action.
--
-- Concurrency: rows locked by others are skipped.
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
  perform treadle.keep_durable();
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
      error = 'the harness is gone; how far it came is not known'
    where harness_actions.task_id = v_id;
    perform treadle.tell_action(v_id, 'interrupted', null, 'the harness is gone');
    return next v_id;
  end loop;
end;
$$;

comment on function treadle.interrupt_actions(integer) is
'Mark actions as interrupted whose harness gave no sign of life; returns their tasks.';

grant execute on function treadle.interrupt_actions(integer) to treadle_producer;
