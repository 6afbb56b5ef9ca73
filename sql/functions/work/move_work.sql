-- move_work: bring a work item to another state, by the functions that every task goes through.
--
-- Concurrency: the caller holds the item and what depends on it.
-- Lock order:  tasks, dags, then the history.
-- Raises:      TR102 illegal transition, TR108 the agent has another item.

create or replace function treadle.move_work(
  p_task     treadle.tasks,
  p_to       text,
  p_agent    text,
  p_notes    text,
  p_actor    text,
  p_stale_s  double precision,
  p_now      timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is text;
begin
  case p_to
    when 'dispatched' then
      perform treadle.let_go(array[p_task.id], p_now);
    when 'in_progress' then
      perform treadle.take_work(p_task, p_agent, p_stale_s, p_now);
    when 'blocked' then
      perform treadle.put_aside(p_task, 'blocked', 0, null, p_now);
    when 'completed' then
      perform done.id
      from treadle.complete_tasks(
        array[p_task.id], array[p_task.claim_token],
        array[jsonb_strip_nulls(jsonb_build_object('outcome', 'success', 'notes', p_notes))]
      ) as done;
    when 'failed' then
      perform ended.id
      from treadle.fail_tasks(
        array[p_task.id], array[p_task.claim_token], array['error'],
        array[coalesce(p_notes, 'the agent said that it failed')], array['fail']
      ) as ended;
    when 'cancelled' then
      perform gone.id from treadle.cancel_tasks(array[p_task.id], p_notes, p_actor) as gone;
  end case;

  select treadle.work_status(tasks.status)
  into v_is
  from treadle.tasks
  where tasks.id = p_task.id;
  if v_is <> p_to then
    -- A node of a DAG that is being built, say.
    perform treadle.refuse_work(
      p_task.id, v_is, p_to, format('work item %s stays %s for now', p_task.id, v_is)
    );
  end if;
end;
$$;

comment on function treadle.move_work(
  treadle.tasks, text, text, text, text, double precision, timestamptz
) is 'Internal: carries out a change of state that was judged before.';

revoke all on function treadle.move_work(
  treadle.tasks, text, text, text, text, double precision, timestamptz
) from public;
