-- why_work: what a work item waits for: its dispatcher, its agent, or what its notes say.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_work(p_task treadle.tasks)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  reason := case p_task.status
    when 'created' then 'not_dispatched' when 'blocked' then 'work_blocked' else 'dispatched'
  end;
  sentence := case reason
    when 'not_dispatched' then 'queued: the dispatcher has not given it to an agent'
    when 'work_blocked'
      then 'blocked: ' || coalesce(treadle.last_line(p_task.notes), 'nobody said why')
    else format(
      'dispatched to %s, which has not picked it up',
      coalesce('agent ' || p_task.assigned_agent, 'nobody')
    )
  end;
  detail := jsonb_strip_nulls(
    jsonb_build_object(
      'agent', p_task.assigned_agent, 'status', treadle.work_status(p_task.status)
    )
  );
  return next;
end;
$$;

comment on function treadle.why_work(treadle.tasks) is
'Internal: that a work item is for people and their agents to move, not for workers.';

revoke all on function treadle.why_work(treadle.tasks) from public;
