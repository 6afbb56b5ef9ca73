-- dispatch_number: which submission of a task the next one is, as its agent sees it.
--
-- One that may have reached this agent is repeated under its number, so that an agent that
-- remembers keys does not execute it again: who answers 5xx for it may have passed it on. Not to
-- be reached takes nothing back. Any other has a number of its own.
--
-- Concurrency: the caller has claimed the task.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.dispatch_number(p_task uuid, p_agent text)
returns integer
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    coalesce(
      (
        select
          case
            when last.outcome in ('unsure', 'silent', 'error', 'unreachable') then last.number
          end
        from (
          select dispatches.outcome, dispatches.number
          from treadle.dispatches
          where dispatches.task_id = p_task and dispatches.agent_id = p_agent
          order by dispatches.sent_at desc
          limit 1
        ) as last
      ),
      (
        select coalesce(max(dispatches.number), 0) + 1
        from treadle.dispatches
        where dispatches.task_id = p_task
      )
    )
$$;

comment on function treadle.dispatch_number(uuid, text) is
'Internal: the number in the idempotency key of the next submission.';

revoke all on function treadle.dispatch_number(uuid, text) from public;
