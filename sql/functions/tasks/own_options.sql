-- own_options: what a task says of itself, as options of enqueue.
--
-- Not what is about this one run of it: its key, its DAG, its parent, its start.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.own_options(p_task treadle.tasks)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_object_agg(kept.key, kept.value)
  from jsonb_each(to_jsonb(p_task)) as kept
  where
    kept.key in (
      'queue', 'type', 'priority', 'timeout_s', 'ageing_rate', 'deadline_at', 'capabilities',
      'assigned_agent', 'retry', 'validation', 'consumer', 'title', 'tags', 'source', 'source_job',
      'external_ref', 'notes', 'project_id', 'max_cost_usd', 'max_tokens', 'on_budget', 'gates',
      'concurrency_key', 'report', 'models', 'fallback_models'
    )
    and kept.value <> 'null'
$$;

comment on function treadle.own_options(treadle.tasks) is
'Internal: the options with which a task like this one is enqueued.';

revoke all on function treadle.own_options(treadle.tasks) from public;
