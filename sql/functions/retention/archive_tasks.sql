-- archive_tasks: copy tasks of queues with prune mode archive to the history, with all their parts.
--
-- Null columns, which are most of them, are left out. The row is json, not jsonb, which is written
-- several times as fast. The tokens of claims and consumers are left out, since they are secret.
--
-- Concurrency: the caller has locked the tasks. Only inserts.

create or replace function treadle.archive_tasks(p_ids uuid[])
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
  insert into treadle.task_history (
    id, queue, type, status, dag_id, parent_id, created_at, completed_at, archived_at, cost_usd,
    task, spec, output, documents, depends_on, attempts, steps, waits, dead_letters, spend,
    artifacts, events
  )
  select
    tasks.id, tasks.queue, tasks.type, tasks.status, tasks.dag_id, tasks.parent_id,
    tasks.created_at, tasks.completed_at, treadle.clock(), tasks.cost_usd,
    -- Documents are added separately, because a null inside them has a meaning.
    json_strip_nulls(
      row_to_json(
        jsonb_populate_record(
          tasks,
          '{
            "spec": null, "output": null, "inputs": null, "progress": null, "claim_token": null,
            "last_token": null
          }'
        )
      )
    ),
    tasks.spec, tasks.output,
    nullif(
      jsonb_build_object('inputs', tasks.inputs, 'progress', tasks.progress)
      || coalesce(task_parts.options, '{}') || coalesce(task_parts.result, '{}')
      || jsonb_build_object('attempt_notes', task_parts.attempt_notes),
      '{"inputs": null, "progress": null, "attempt_notes": null}'
    ),
    task_parts.depends_on, task_parts.attempts, task_parts.steps, task_parts.waits,
    task_parts.dead_letters, task_parts.spend, task_parts.artifacts, task_parts.events
  from treadle.tasks
  inner join treadle.queues on tasks.queue = queues.name
  inner join treadle.task_parts on tasks.id = task_parts.id
  where tasks.id = any (p_ids) and queues.prune_mode = 'archive';
$$;

-- prune_dags: archive ended DAGs whose tasks are deleted, and delete them with their budgets.
--
-- A DAG is archived if one of its tasks is.
--
-- Concurrency: the caller has locked the DAGs and all their tasks.
-- Lock order:  budgets, then the history.
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

-- aggregate_spend: add up the cost of tasks by the hour, and delete the single calls.
--
-- Daily totals and budgets stay exact, because no budget has a period shorter than an hour.
--
-- Concurrency: sums are written in one order; another pruner may have to wait for them.
-- Lock order:  spend, spend_hours.
create or replace function treadle.aggregate_spend(p_ids uuid[])
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
  with gone as (
    delete from treadle.spend
    where spend.task_id = any (p_ids)
    returning *
  )

  insert into treadle.spend_hours (
    hour, agent_id, model, type, project_id, calls, input_tokens, output_tokens, usd
  )
  select
    date_trunc('hour', gone.at, 'UTC') as hour, gone.agent_id, gone.model, gone.type,
    gone.project_id, count(*), sum(gone.input_tokens), sum(gone.output_tokens), sum(gone.usd)
  from gone
  group by hour, gone.agent_id, gone.model, gone.type, gone.project_id
  order by hour, gone.agent_id, gone.model, gone.type, gone.project_id
  on conflict (hour, agent_id, model, type, project_id) do update
  set
    calls = spend_hours.calls + excluded.calls,
    input_tokens = spend_hours.input_tokens + excluded.input_tokens,
    output_tokens = spend_hours.output_tokens + excluded.output_tokens,
    usd = spend_hours.usd + excluded.usd;
$$;
