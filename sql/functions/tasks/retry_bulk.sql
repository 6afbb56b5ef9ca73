-- retry_bulk: retry tasks in waves, first those that wait for none of the others.
--
-- A task that depends on a task which stays cancelled is refused, and so is a task that cannot be
-- restarted; the others are retried.
--
-- Concurrency: the caller has locked the tasks and their dependencies.
-- Lock order:  lanes, dags, then the history.

-- retryable_tasks: return the tasks that do not depend on a cancelled task.
--
-- Concurrency: the caller has locked the tasks and their dependencies.
create or replace function treadle.retryable_tasks(p_ids uuid[])
returns uuid[]
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  select
    array(
      select given.id
      from unnest(p_ids) as given (id)
      where not exists (
        select
        from treadle.dependencies
        inner join treadle.tasks on dependencies.depends_on = tasks.id
        where
          dependencies.task_id = given.id and dependencies.met_at is null
          and tasks.status = 'cancelled'
      )
    )
$$;

-- retry_wave: retry some tasks; one that cannot be retried does not stop the others.
--
-- Concurrency: the caller has locked the tasks.
-- Lock order:  lanes, then the history.
create or replace function treadle.retry_wave(
  p_wave        treadle.bulk_task[],
  p_actor       text,
  p_note        text,
  p_resolution  text default 'retry',
  p_changes     jsonb default '{}',
  p_delay_s     double precision default null
)
returns treadle.bulk_task[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wave treadle.bulk_task[] := p_wave;
begin
  begin
    perform treadle.resolve_task(
      each.id, p_resolution, p_changes, p_actor, p_note, p_delay_s
    )
    from unnest(v_wave) as each;
    return v_wave;
  exception
    when sqlstate 'TR000' then
      null;
  end;

  -- One of them was refused: try each one separately, so that the others succeed.
  for v_at in 1..cardinality(v_wave) loop
    begin
      perform treadle.resolve_task(
        v_wave[v_at].id, p_resolution, p_changes, p_actor, p_note, p_delay_s
      );
    exception
      when sqlstate 'TR000' then
        v_wave[v_at].verdict := 'refused';
        v_wave[v_at].why := sqlerrm;
    end;
  end loop;
  return v_wave;
end;
$$;

create or replace function treadle.retry_bulk(
  p_found       treadle.bulk_task[],
  p_actor       text,
  p_note        text,
  p_resolution  text default 'retry',
  p_changes     jsonb default '{}',
  p_delay_s     double precision default null
)
returns treadle.bulk_task[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_todo   treadle.bulk_task[] := array(
    select each from unnest(p_found) as each where each.verdict = 'retried'
  );
  v_done   treadle.bulk_task[] := array(
    select each from unnest(p_found) as each where each.verdict <> 'retried'
  );
  v_free   uuid[];
  v_wave   treadle.bulk_task[];
  v_dags   uuid[];
  v_was    text[];
begin
  loop
    v_free := treadle.retryable_tasks(array(select each.id from unnest(v_todo) as each));
    exit when v_free = '{}';
    v_wave := array(
      select each from unnest(v_todo) as each
      where each.id in (select free.id from unnest(v_free) as free (id))
    );
    v_todo := array(
      select each from unnest(v_todo) as each
      where each.id not in (select free.id from unnest(v_free) as free (id))
    );
    v_done := v_done || treadle.retry_wave(
      v_wave, p_actor, p_note, p_resolution, p_changes, p_delay_s
    );
  end loop;

  -- Counted once for all tasks: each update would add a row version that the next one has to skip.
  select array_agg(tasks.dag_id), array_agg(each.status)
  into v_dags, v_was
  from unnest(v_done) as each
  inner join treadle.tasks on each.id = tasks.id
  where each.verdict = 'retried' and tasks.dag_id is not null;
  if v_dags is not null then
    perform treadle.update_dag_counters(
      v_dags, v_was, array_fill(null::text, array[cardinality(v_dags)]), treadle.clock()
    );
  end if;

  return v_done || array(
    select
      row(
        each.id, each.queue, each.type, each.status, 'refused',
        'it depends on a task that was cancelled and is not retried with it'
      )::treadle.bulk_task
    from unnest(v_todo) as each
  );
end;
$$;
