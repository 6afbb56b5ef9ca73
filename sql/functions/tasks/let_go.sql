-- let_go: let tasks go that are held, as far as their DAG is not open.
--
-- With an actor each has its event, whatever is audited; a dispatch has its own log.
--
-- Concurrency: rows are locked in id order.
-- Lock order:  tasks, then the history.
-- Raises:      nothing; what is not held is left as it is.

create or replace function treadle.let_go(
  p_ids    uuid[],
  p_now    timestamptz,
  p_actor  text default null
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_rows tid[];
begin
  with held as materialized (
    select tasks.id
    from unnest(p_ids) as wanted (id)
    inner join treadle.tasks on wanted.id = tasks.id
    where tasks.status = 'created' and not exists (
      select from treadle.dags where dags.id = tasks.dag_id and dags.status = 'open'
    )
    order by tasks.id
    for no key update of tasks
  ),

  freed as (
    update treadle.tasks
    set
      status = case
        when tasks.blocked_count > 0 or tasks.run_at > p_now then 'pending'
        else treadle.entry_status(tasks.concurrency_key, tasks.slot)
      end,
      slot = case
        when tasks.blocked_count = 0 and coalesce(tasks.run_at <= p_now, true)
          then treadle.entry_slot(tasks.concurrency_key, tasks.slot)
      end
    -- Not by ctid: a row that changed while it was waited for would not be found there.
    where tasks.id = any (array(select held.id from held))
    returning tasks.ctid
  )

  select array_agg(freed.ctid) into v_rows from freed;
  perform treadle.announce_rows(v_rows, case when p_actor is null then 'unheld' end);
  if p_actor is not null then
    insert into treadle.events (at, kind, task_id, queue, actor, data)
    select
      p_now, 'task.unheld', tasks.id, tasks.queue, p_actor,
      jsonb_build_object('status', tasks.status)
    from treadle.tasks
    where tasks.ctid = any (v_rows)
    order by tasks.id;
  end if;
end;
$$;

comment on function treadle.let_go(uuid[], timestamptz, text) is
'Internal: what unhold_tasks does to tasks, and a dispatch to a work item.';

revoke all on function treadle.let_go(uuid[], timestamptz, text) from public;
