-- cancel_task: cancel one task; an error when it has ended otherwise or does not exist.
--
-- select treadle.cancel_task(id, 'not needed');
--
-- Concurrency: see cancel_tasks.
-- Lock order:  tasks, then the history.
-- Raises:      TR102 illegal transition, TR201 task not found.

create or replace function treadle.cancel_task(
  p_id      uuid,
  p_reason  text default null,
  p_actor   text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_verdict text;
begin
  select cancelled.verdict
  into v_verdict
  from treadle.cancel_tasks(array[p_id], p_reason, p_actor) as cancelled;
  if v_verdict in ('ended', 'unknown') then
    perform treadle.refuse_transition(p_id, 'cancelled', 'cancel_tasks');
  end if;
  return v_verdict;
end;
$$;

comment on function treadle.cancel_task(uuid, text, text) is
'Cancel one task, with a reason that is kept.';

revoke all on function treadle.cancel_task(uuid, text, text) from public;
grant execute on function treadle.cancel_task(uuid, text, text) to
treadle_producer, treadle_operator;
