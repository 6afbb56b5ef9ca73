-- task_parts: everything that belongs to a task, as JSON; null if there is nothing.
--
-- For archive_tasks; no role may read it. Claim tokens are left out, since they are secret.

create view treadle.task_parts as
select
  tasks.id,
  case
    when tasks.has_options then (
      select jsonb_object_agg(parts.key, parts.value)
      from treadle.task_options as rest
      cross join lateral jsonb_each(to_jsonb(rest) - 'task_id') as parts
      where rest.task_id = tasks.id and parts.value <> 'null'
    )
  end as options,
  (
    select
      jsonb_strip_nulls(jsonb_build_object('consumed_at', results.consumed_at))
      || jsonb_build_object('decision_report', results.decision_report)
    from treadle.results
    where results.task_id = tasks.id
  ) as result,
  (
    select
      jsonb_agg(
        jsonb_build_object('attempt', parts.attempt, 'at', parts.at, 'note', parts.note)
        order by parts.number
      )
    from treadle.attempt_notes as parts
    where parts.task_id = tasks.id
  ) as attempt_notes,
  (
    select array_agg(edges.depends_on order by edges.depends_on)
    from treadle.dependencies as edges
    where edges.task_id = tasks.id
  ) as depends_on,
  (
    select
      jsonb_agg(
        to_jsonb(parts) - '{task_id,claim_token}'::text[]
        order by parts.ended_at, parts.attempt
      )
    from treadle.attempts as parts
    where parts.task_id = tasks.id
  ) as attempts,
  (
    select jsonb_agg(to_jsonb(parts) - '{task_id,claim_token}'::text[] order by parts.seq)
    from treadle.steps as parts
    where parts.task_id = tasks.id
  ) as steps,
  (
    select
      jsonb_agg(
        to_jsonb(parts) - 'task_id' || jsonb_build_object(
          'answers',
          (
            select jsonb_agg(to_jsonb(answers) - 'wait_id' order by answers.at)
            from treadle.answers
            where answers.wait_id = parts.id
          )
        )
        order by parts.opened_at, parts.id
      )
    from treadle.waits as parts
    where parts.task_id = tasks.id
  ) as waits,
  (
    select jsonb_agg(to_jsonb(parts) - 'task_id' order by parts.dead_lettered_at)
    from treadle.dead_letters as parts
    where parts.task_id = tasks.id
  ) as dead_letters,
  (
    select jsonb_agg(to_jsonb(parts) - 'task_id' order by parts.at, parts.call_id)
    from treadle.spend as parts
    where parts.task_id = tasks.id
  ) as spend,
  (
    select
      jsonb_agg(
        to_jsonb(parts) - '{task_id,claim_token}'::text[]
        order by parts.created_at, parts.id
      )
    from treadle.artifacts as parts
    where parts.task_id = tasks.id
  ) as artifacts,
  (
    select jsonb_agg(to_jsonb(parts) - 'task_id' order by parts.id)
    from treadle.events as parts
    where parts.task_id = tasks.id
  ) as events
from treadle.tasks;

comment on view treadle.task_parts is
'Attempts, steps, waits, dead letters, spend, artifacts and events of a task. Filter by id.';
comment on column treadle.task_parts.id is 'Id of the task.';
comment on column treadle.task_parts.options is 'Its row in task_options, as JSON.';
comment on column treadle.task_parts.result is 'Its row in results, as JSON.';
comment on column treadle.task_parts.attempt_notes is 'Notes that attempts left, as JSON.';
comment on column treadle.task_parts.depends_on is 'Ids of the tasks that it depends on.';
comment on column treadle.task_parts.attempts is 'Its attempts, as JSON.';
comment on column treadle.task_parts.steps is 'Its saved steps, as JSON.';
comment on column treadle.task_parts.waits is 'Its waits with their answers, as JSON.';
comment on column treadle.task_parts.dead_letters is 'Its dead letters, as JSON.';
comment on column treadle.task_parts.spend is 'Its paid calls, as JSON.';
comment on column treadle.task_parts.artifacts is 'Its artifacts, as JSON.';
comment on column treadle.task_parts.events is 'Its events, as JSON.';
