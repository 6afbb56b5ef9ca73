-- met_since: now, if a new edge onto this task holds nobody back; null if it does.
--
-- Concurrency: the caller holds the task.
-- Lock order:  none.
-- Raises:      TR102 illegal transition, when the task can never release its dependent.

create or replace function treadle.met_since(
  p_task      uuid,
  p_optional  boolean,
  p_policy    text,
  p_now       timestamptz
)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_status  text;
  v_verdict text;
begin
  select tasks.status into v_status from treadle.tasks where tasks.id = p_task;
  v_verdict := treadle.edge_verdict(
    v_status, p_optional, treadle.edge_policy(p_policy, p_optional)
  );
  if v_verdict = 'never' then
    perform treadle.refuse(
      format('nothing can depend on task %s: it is %s', p_task, v_status),
      jsonb_build_object('task_id', p_task, 'status', v_status),
      'Retry that task first, or make the dependency optional.',
      'TR102'
    );
  end if;
  return case when v_verdict = 'met' then p_now end;
end;
$$;

comment on function treadle.met_since(uuid, boolean, text, timestamptz) is
'Internal: judges a new edge onto a task that exists.';

revoke all on function treadle.met_since(uuid, boolean, text, timestamptz) from public;
