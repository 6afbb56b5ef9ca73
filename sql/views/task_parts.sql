-- task_parts: all that belongs to a task, as json; empty where there is nothing.
--
-- For archive_tasks: no role may read it. The tokens of claims are left out, since they are secret.

create view treadle.task_parts as
select
  tasks.id,
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
'Attempts, steps, waits, dead letters, spend, artifacts and events of a task; filter by id.';
