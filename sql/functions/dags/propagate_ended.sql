-- propagate_ended: apply the consequences of cancelled tasks and dead letters to other tasks.
--
-- Optional edges are met, DAG counters are updated, open waits are closed, and dependents are
-- cancelled: those of a cancelled task always, those of a dead letter over edges with that policy.
--
-- Concurrency: the caller has locked the tasks and the known tasks that are cancelled with them.
-- Lock order:  tasks, dags, then the rest.

create or replace function treadle.propagate_ended(
  p_ids  uuid[],
  p_now  timestamptz,
  p_old_status  text default null
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_dead      uuid[];
  v_cancelled uuid[];
  v_dags      uuid[];
  v_ends      text[];
  v_group      record;
begin
  select
    array_agg(tasks.id) filter (where tasks.status = 'dead_lettered'),
    array_agg(tasks.id) filter (where tasks.status = 'cancelled'),
    array_agg(tasks.dag_id) filter (where tasks.dag_id is not null),
    array_agg(tasks.status) filter (where tasks.dag_id is not null)
  into v_dead, v_cancelled, v_dags, v_ends
  from treadle.tasks
  where tasks.id = any (p_ids) and tasks.status in ('dead_lettered', 'cancelled');

  perform treadle.satisfy_dependencies(v_dead, 'dead_lettered', p_now) where v_dead is not null;
  perform treadle.satisfy_dependencies(
    v_cancelled, 'cancelled', p_now
  ) where v_cancelled is not null;
  perform treadle.close_waits(v_dead || v_cancelled);

  for v_group in
    select
      array_agg(falling.id) as ids,
      falling.because
    from (
      select
        edges.task_id as id,
        format(
          'it depends on %s, which %s%s', coalesce(tasks.name, tasks.id::text),
          case tasks.status when 'cancelled' then 'was cancelled' else 'was dead-lettered' end,
          coalesce(': ' || tasks.failure_reason, '')
        ) as because
      from unnest(v_dead || v_cancelled) as ended (id)
      cross join lateral (
        -- The offset keeps this subquery separate, so that edges are looked up task by task.
        select dependencies.task_id, dependencies.on_dead_letter
        from treadle.dependencies
        where
          dependencies.depends_on = ended.id
          and dependencies.met_at is null
          and not dependencies.optional
        offset 0
      ) as edges
      inner join treadle.tasks on ended.id = tasks.id
      inner join treadle.tasks as dependent on edges.task_id = dependent.id
      where
        dependent.completed_at is null
        and (tasks.status = 'cancelled' or edges.on_dead_letter = 'cancel')
    ) as falling
    group by falling.because
  loop
    perform gone.id from treadle.cancel_tasks(v_group.ids, v_group.because) as gone;
  end loop;

  if v_dags is not null then
    perform treadle.update_dag_counters(
      v_dags, array_fill(p_old_status, array[cardinality(v_dags)]), v_ends, p_now
    );
  end if;
end;
$$;
