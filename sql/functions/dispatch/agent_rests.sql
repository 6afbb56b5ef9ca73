-- agent_rests: whether an agent did not take or keep a task within the last seconds.
--
-- Who says idle and takes nothing would otherwise be sent to as fast as it answers.
--
-- Concurrency: reads; exact where the caller has locked the agent.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.agent_rests(p_agent text, p_rest_s double precision)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (
      select
        last.outcome not in ('completed', 'failed', 'cancelled', 'superseded')
        and last.ended_at > treadle.clock() - make_interval(secs => p_rest_s)
      from (
        select dispatches.outcome, dispatches.ended_at
        from treadle.dispatches
        where dispatches.agent_id = p_agent
        order by dispatches.sent_at desc
        limit 1
      ) as last
    ),
    false
  )
$$;

comment on function treadle.agent_rests(text, double precision) is
'Internal: whether the last submission to an agent failed a moment ago.';

revoke all on function treadle.agent_rests(text, double precision) from public;
