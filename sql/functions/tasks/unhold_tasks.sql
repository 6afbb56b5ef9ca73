-- unhold_tasks: let tasks go that were enqueued with hold.
--
-- Of each it says ready, pending (its time has not come, or it waits for others) or its state when
-- it was not held. Tasks of a DAG that is open wait for start_dag.
--
-- Concurrency: rows are locked in id order.
-- Lock order:  tasks.
-- Raises:      nothing; an unknown id comes back as unknown.

create or replace function treadle.unhold_tasks(p_ids uuid[])
returns table (id uuid, verdict text)
language plpgsql
volatile
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := treadle.clock();
  v_rows tid[];
begin
  perform treadle.keep_durable();

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
        when tasks.blocked_count > 0 or tasks.run_at > v_now then 'pending'
        else treadle.entry_status(tasks.concurrency_key, tasks.slot)
      end,
      slot = case
        when tasks.blocked_count = 0 and coalesce(tasks.run_at <= v_now, true)
          then treadle.entry_slot(tasks.concurrency_key, tasks.slot)
      end
    -- Not by ctid: a row that changed while it was waited for would not be found there.
    where tasks.id = any (array(select held.id from held))
    returning tasks.ctid
  )

  select array_agg(freed.ctid) into v_rows from freed;
  perform treadle.announce_rows(v_rows, 'unheld');
  return query
  select wanted.id, coalesce(tasks.status, 'unknown')
  from unnest(p_ids) with ordinality as wanted (id, at)
  left join treadle.tasks on wanted.id = tasks.id
  order by wanted.at;
end;
$$;

comment on function treadle.unhold_tasks(uuid[]) is
'Release tasks that were enqueued with hold; says of each the state it is in now.';

revoke all on function treadle.unhold_tasks(uuid[]) from public;
grant execute on function treadle.unhold_tasks(uuid[]) to treadle_producer, treadle_operator;
