-- dispatch_target_of: what it takes to follow a submission.
--
-- After an error it is sent like any other, though under the same number: the agent has said no.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.dispatch_target_of(p_dispatch treadle.dispatches)
returns treadle.dispatch_target
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select row(
    (p_dispatch).task_id,
    (p_dispatch).claim_token,
    (p_dispatch).number,
    (p_dispatch).attempt,
    coalesce(tasks.max_attempts, (p_dispatch).attempt),
    (p_dispatch).agent_id,
    (p_dispatch).agent_url,
    (p_dispatch).allow_private,
    (p_dispatch).agent_task_id,
    coalesce((treadle.resolve_inputs(tasks)).spec, '{}'),
    case
      when tasks.claim_token = (p_dispatch).claim_token then 'ok'
      when tasks.status = 'cancelled' and tasks.last_token = (p_dispatch).claim_token
        then 'cancelled'
      else 'lost'
    end,
    exists (
      select from treadle.dispatches as earlier
      where
        earlier.task_id = (p_dispatch).task_id
        and earlier.agent_id = (p_dispatch).agent_id
        and earlier.number = (p_dispatch).number
        and earlier.claim_token <> (p_dispatch).claim_token
        and earlier.outcome in ('unsure', 'silent')
    )
  )::treadle.dispatch_target
  from (select (p_dispatch).task_id as id) as given
  left join treadle.tasks on given.id = tasks.id
$$;

comment on function treadle.dispatch_target_of(treadle.dispatches) is
'Internal: a submission with the request of its task, whether its claim holds, and whether '
'the agent was sent it before without an answer.';

revoke all on function treadle.dispatch_target_of(treadle.dispatches) from public;
