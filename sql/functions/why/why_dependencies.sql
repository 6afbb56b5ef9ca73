-- why_dependencies: which tasks have to end before this one may start.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_dependencies(p_task treadle.tasks)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_edges integer;
  v_named text;
  v_tasks jsonb;
begin
  if p_task.blocked_count = 0 then
    return;
  end if;

  select count(*) into v_edges
  from treadle.dependencies
  where dependencies.task_id = p_task.id;

  -- Those that will not end by themselves first.
  select
    string_agg(edges.words, ', ' order by edges.number) filter (where edges.number <= 5),
    jsonb_agg(edges.entry order by edges.number)
  into v_named, v_tasks
  from (
    select
      row_number() over (order by others.completed_at is null, others.id) as number,
      treadle.task_words(others.id, others.name, others.type) || case others.status
        when 'dead_lettered'
          then ' (gave up' || coalesce(': ' || treadle.last_line(others.failure_reason), '') || ')'
        when 'cancelled' then ' (was cancelled)'
        else ''
      end as words,
      jsonb_build_object(
        'id', others.id, 'name', others.name, 'type', others.type, 'status', others.status
      ) as entry
    from treadle.dependencies
    inner join treadle.tasks as others on dependencies.depends_on = others.id
    where dependencies.task_id = p_task.id and dependencies.met_at is null
    order by others.completed_at is null, others.id
    limit 100
  ) as edges;

  sentence := format(
    'waiting for %s of %s dependencies%s%s', p_task.blocked_count,
    greatest(v_edges, p_task.blocked_count), coalesce(': ' || v_named, ''),
    case
      when p_task.blocked_count > 5 then format(' and %s more', p_task.blocked_count - 5) else ''
    end
  );
  reason := 'dependencies';
  detail := jsonb_build_object(
    'open', p_task.blocked_count, 'all', v_edges, 'tasks', coalesce(v_tasks, '[]')
  );
  return next;
end;
$$;

comment on function treadle.why_dependencies(treadle.tasks) is
'Internal: what a task depends on and is not done yet, by name.';

revoke all on function treadle.why_dependencies(treadle.tasks) from public;
