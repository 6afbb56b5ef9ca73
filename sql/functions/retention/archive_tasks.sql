-- archive_tasks: write tasks whose queue says so to the history, with all that is theirs.
--
-- Columns that are empty are left out of the row: most are. It is json, not jsonb, since that is
-- written several times as fast. The tokens of claims and consumers are left out, since they are
-- secret.
--
-- Concurrency: the caller holds the tasks.
-- Lock order:  none but new rows.
-- Raises:      nothing.

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
    -- Without its documents: in those an empty value says something.
    json_strip_nulls(
      row_to_json(
        jsonb_populate_record(
          tasks,
          '{
            "spec": null, "output": null, "inputs": null, "progress": null, "retry": null,
            "validation": null, "artifacts": null, "decision_report": null,
            "attempt_notes": null, "claim_token": null, "last_token": null, "consumed_token": null
          }'
        )
      )
    ),
    tasks.spec, tasks.output,
    case
      when
        num_nonnulls(
          tasks.inputs, tasks.progress, tasks.retry, tasks.validation, tasks.artifacts,
          tasks.decision_report, tasks.attempt_notes
        ) > 0
        then jsonb_build_object(
          'inputs', tasks.inputs, 'progress', tasks.progress, 'retry', tasks.retry,
          'validation', tasks.validation, 'artifacts', tasks.artifacts,
          'decision_report', tasks.decision_report,
          'attempt_notes',
          case when jsonb_typeof(tasks.attempt_notes) = 'array' then (
            select jsonb_agg(
              case jsonb_typeof(noted.note)
                when 'object' then noted.note - 'token' else noted.note
              end
              order by noted.at
            )
            from jsonb_array_elements(tasks.attempt_notes) with ordinality as noted (note, at)
          ) else tasks.attempt_notes end
        )
    end,
    task_parts.depends_on, task_parts.attempts, task_parts.steps, task_parts.waits,
    task_parts.dead_letters, task_parts.spend, task_parts.artifacts, task_parts.events
  from treadle.tasks
  inner join treadle.queues on tasks.queue = queues.name
  inner join treadle.task_parts on tasks.id = task_parts.id
  where tasks.id = any (p_ids) and queues.prune_mode = 'archive';
$$;

comment on function treadle.archive_tasks(uuid[]) is
'Internal: copies finished tasks to the history.';

revoke all on function treadle.archive_tasks(uuid[]) from public;
