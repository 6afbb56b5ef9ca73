-- write_work: write the agent and the notes of a work item, and renew its lease.
--
-- Which agent may have a task is a matter of its lane, so another agent means another lane.
--
-- Concurrency: the caller holds the item.
-- Lock order:  lanes, tasks.
-- Raises:      nothing.

create or replace function treadle.write_work(
  p_task     treadle.tasks,
  p_agent    text,
  p_notes    text,
  p_stale_s  double precision,
  p_now      timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task treadle.tasks := p_task;
begin
  if p_agent is distinct from p_task.assigned_agent then
    v_task.assigned_agent := p_agent;
    select placed.*
    into v_task
    from treadle.task_types
    cross join treadle.queues
    cross join lateral treadle.place_task(v_task, task_types, queues) as placed
    where task_types.name = p_task.type and queues.name = p_task.queue;
  end if;

  update treadle.tasks
  set
    assigned_agent = p_agent,
    lane_id = v_task.lane_id,
    rank = v_task.rank,
    rerank_at = v_task.rerank_at,
    notes = p_notes,
    heartbeat_at = case
      when p_task.claim_token is null then tasks.heartbeat_at else p_now
    end,
    lease_until = case
      when p_task.claim_token is not null then p_now + make_interval(secs => p_stale_s)
    end
  where tasks.id = p_task.id;
end;
$$;

comment on function treadle.write_work(
  treadle.tasks, text, text, double precision, timestamptz
) is 'Internal: stores what a change of a work item says besides its state.';

revoke all on function treadle.write_work(
  treadle.tasks, text, text, double precision, timestamptz
) from public;
