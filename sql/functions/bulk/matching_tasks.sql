-- matching_tasks: the tasks that a filter finds, in order of their ids.
--
-- agent is who has the task, or who had it last; reason is a part of the reason of its failure.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing: the filter was checked.

create or replace function treadle.matching_tasks(
  p_filter  jsonb,
  p_states  text[],
  p_ids     uuid[] default null
)
returns table (id uuid, queue text, type text, status text)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := treadle.clock();
  v_before timestamptz := treadle.moment_of(p_filter ->> 'created_before', v_now);
  v_after  timestamptz := treadle.moment_of(p_filter ->> 'created_after', v_now);
  v_queue  text := p_filter ->> 'queue';
  v_type   text := p_filter ->> 'type';
  v_tag    text := p_filter ->> 'tag';
  v_dag    uuid := p_filter ->> 'dag_id';
  v_owner  uuid := p_filter ->> 'project_id';
  v_agent  text := p_filter ->> 'agent';
  v_class  text := p_filter ->> 'failure_class';
  v_reason text := p_filter ->> 'reason';
  v_by     text := p_filter ->> 'created_by';
  v_source text := p_filter ->> 'source';
begin
  -- Planned with the values at hand: what was not given costs nothing.
  return query
  select tasks.id, tasks.queue, tasks.type, tasks.status
  from treadle.tasks
  where
    tasks.status = any (p_states)
    and (p_ids is null or tasks.id = any (p_ids))
    and (v_queue is null or tasks.queue = v_queue)
    and (v_type is null or tasks.type = v_type)
    and (v_tag is null or v_tag = any (tasks.tags))
    and (v_dag is null or tasks.dag_id = v_dag)
    and (v_owner is null or tasks.project_id = v_owner)
    and (v_class is null or tasks.failure_class = v_class)
    and (v_reason is null or position(v_reason in tasks.failure_reason) > 0)
    and (v_before is null or tasks.created_at < v_before)
    and (v_after is null or tasks.created_at > v_after)
    and (v_by is null or tasks.created_by = v_by)
    and (v_source is null or tasks.source = v_source)
    and (
      v_agent is null or v_agent = coalesce(
        tasks.agent_id,
        (
          select attempts.agent_id from treadle.attempts
          where attempts.task_id = tasks.id
          order by attempts.ended_at desc
          limit 1
        )
      )
    )
  order by tasks.id;
end;
$$;

comment on function treadle.matching_tasks(jsonb, text[], uuid[]) is
'Internal: tasks in some states that a filter finds, of all or of some.';

revoke all on function treadle.matching_tasks(jsonb, text[], uuid[]) from public;
