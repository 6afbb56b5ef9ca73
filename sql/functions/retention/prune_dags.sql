-- prune_dags: archive ended DAGs whose tasks go, and delete them with their budgets.
--
-- A DAG is archived where one of its tasks is.
--
-- Concurrency: the caller holds the DAGs and all their tasks.
-- Lock order:  budgets, then the history.
-- Raises:      nothing.

create or replace function treadle.prune_dags(p_dags uuid[], p_read treadle.event_readers)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  insert into treadle.dag_history (
    id, name, status, created_at, ended_at, archived_at, dag, budgets, events
  )
  select
    dags.id, dags.name, dags.status, dags.created_at, dags.ended_at, treadle.clock(),
    to_jsonb(dags),
    (
      select jsonb_agg(to_jsonb(budgets) order by budgets.id)
      from treadle.budgets
      where budgets.scope = 'dag' and budgets.scope_key = dags.id::text
    ),
    (
      select jsonb_agg(to_jsonb(events) - 'dag_id' order by events.id)
      from treadle.events
      where events.dag_id = dags.id and events.task_id is null
    )
  from treadle.dags
  where
    dags.id = any (p_dags)
    and exists (
      select from treadle.tasks
      inner join treadle.queues on tasks.queue = queues.name
      where tasks.dag_id = dags.id and queues.prune_mode = 'archive'
    );

  delete from treadle.budgets
  where budgets.scope = 'dag' and budgets.scope_key = any (p_dags::text[]);
  delete from treadle.events
  where
    events.dag_id = any (p_dags) and events.task_id is null and events.key is null
    and (events.xid, events.id) <= (p_read.xid, p_read.id)
    and events.xid < pg_snapshot_xmin(pg_current_snapshot());
  delete from treadle.dags where dags.id = any (p_dags);
$$;

comment on function treadle.prune_dags(uuid[], treadle.event_readers) is
'Internal: lets ended DAGs go.';

revoke all on function treadle.prune_dags(uuid[], treadle.event_readers) from public;
