-- prune_tasks: archive or delete ended tasks whose retention is over, with all their parts.
--
-- select * from treadle.prune_tasks();
--
-- It reads a range of the table from p_after on and returns in place where to continue; null at the
-- end of the table. No index is needed for this, so completions cost nothing extra. Related tasks
-- are deleted together, see related_tasks, and tasks that are still needed are kept, see
-- pinned_tasks. A set that cannot be deleted does not stop the others: bad has one of its tasks;
-- pass that id in p_skip to leave the set out.
--
-- Concurrency: skips locked rows; everything is checked again on the locked rows. Several sessions
-- may run at once.
-- Lock order:  tasks, dags, budgets, then the history.

-- find_prunable: find tasks whose retention is over, in physical order, from a position on.
--
-- Reads at most 2048 pages and returns at most p_limit tasks; place is where the next call starts,
-- null at the end of the table, and null at once if no queue has a retention.
create or replace function treadle.find_prunable(p_after tid, p_limit integer, p_skip uuid[])
returns treadle.found_tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  c_pages constant bigint := 2048;
  v_pages bigint := pg_relation_size('treadle.tasks') / current_setting('block_size')::bigint;
  v_until bigint := trim(leading '(' from split_part(p_after::text, ',', 1))::bigint + c_pages;
  v_found treadle.found_tasks := row(null, '{}');
begin
  if not exists (
    select from treadle.queues
    where num_nonnulls(
      queues.keep_completed_s, queues.keep_cancelled_s, queues.keep_dead_s
    ) > 0
  ) then
    return v_found;
  end if;

  select max(found.place), coalesce(array_agg(found.id), '{}')
  into v_found.place, v_found.ids
  from (
    select prunable_tasks.place, prunable_tasks.id
    from treadle.prunable_tasks
    where
      prunable_tasks.place > p_after
      and prunable_tasks.place < format('(%s,0)', least(v_until, 4294967295))::tid
      and prunable_tasks.id <> all (p_skip)
    limit p_limit
  ) as found;
  if cardinality(v_found.ids) < p_limit then
    v_found.place := case
      when v_until < v_pages then format('(%s,0)', v_until)::tid
    end;
  end if;
  return v_found;
end;
$$;

-- related_tasks: return tasks and all expired tasks that must be deleted with them.
--
-- The tasks of a DAG are deleted as a whole. A task and those that it spawned are deleted together
-- as well, because a retry needs them.
create or replace function treadle.related_tasks(p_ids uuid[], p_skip uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_all  uuid[] := p_ids;
  v_last uuid[] := p_ids;
  v_dags uuid[];
begin
  loop
    v_dags := array(
      select distinct tasks.dag_id
      from treadle.tasks
      where tasks.id = any (v_last) and tasks.dag_id is not null
    );
    v_last := array(
      select related.id
      from (
        select prunable_tasks.id
        from treadle.prunable_tasks
        where prunable_tasks.dag_id = any (v_dags)
        union
        select prunable_tasks.id
        from treadle.prunable_tasks
        where prunable_tasks.parent_id = any (v_last)
        union
        select prunable_tasks.id
        from treadle.prunable_tasks
        where prunable_tasks.id = any (
          array(
            select tasks.parent_id
            from treadle.tasks
            where tasks.id = any (v_last) and tasks.parent_id is not null
          )
        )
      ) as related
      where related.id <> all (v_all) and related.id <> all (p_skip)
    );
    exit when v_last = '{}';
    v_all := v_all || v_last;
  end loop;
  return v_all;
end;
$$;

-- prune_unit: return one task and the related tasks of a set, transitively.
--
-- Concurrency: reads only; the caller has locked them.
create or replace function treadle.prune_unit(p_id uuid, p_of uuid[])
returns uuid[]
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select related.id
    from unnest(treadle.related_tasks(array[p_id], '{}')) with ordinality as related (id, at)
    where related.id = any (p_of)
    order by related.at
  )
$$;

-- lock_prunable: lock tasks to be deleted, and their DAGs; returns those that were locked.
--
-- Concurrency: skips locked rows. The retention is checked again on the locked row, so that a task
-- retried in the meantime is left out.
-- Lock order:  tasks, dags.
create or replace function treadle.lock_prunable(p_ids uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_ids  uuid[] := array(
    select prunable_tasks.id
    from treadle.prunable_tasks
    where prunable_tasks.id = any (p_ids)
    for update skip locked
  );
  v_dags uuid[] := array(
    select distinct tasks.dag_id
    from treadle.tasks
    where tasks.id = any (v_ids) and tasks.dag_id is not null
  );
  v_held uuid[];
begin
  if v_dags = '{}' then
    return v_ids;
  end if;
  v_held := array(
    select dags.id from treadle.dags where dags.id = any (v_dags) for update skip locked
  );
  return array(
    select tasks.id
    from treadle.tasks
    where
      tasks.id = any (v_ids)
      and (
        tasks.dag_id is null
        or tasks.dag_id = any (v_held)
        or not exists (select from treadle.dags where dags.id = tasks.dag_id)
      )
  );
end;
$$;

-- prune_rows: archive tasks if their queues say so, and delete them with all their parts.
--
-- Decisions about dead letters are kept. Spending is added up by the hour. Files are marked for
-- deletion by tg_tasks__orphan_artifacts.
--
-- Concurrency: the caller has locked the tasks and their DAGs, and has found nothing that needs
-- them.
-- Lock order:  budgets, then the history.
create or replace function treadle.prune_rows(p_ids uuid[])
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_read treadle.event_readers := treadle.slowest_reader();
  v_dags uuid[] := array(
    select distinct tasks.dag_id
    from treadle.tasks
    where tasks.id = any (p_ids) and tasks.dag_id is not null
  );
  v_gone integer;
begin
  if p_ids = '{}' then
    return 0;
  end if;
  perform treadle.archive_tasks(p_ids);
  perform treadle.prune_dags(v_dags, v_read) where v_dags <> '{}';
  perform treadle.aggregate_spend(p_ids);

  delete from treadle.task_options where task_options.task_id = any (p_ids);
  delete from treadle.results where results.task_id = any (p_ids);
  delete from treadle.attempt_notes where attempt_notes.task_id = any (p_ids);
  delete from treadle.attempts where attempts.task_id = any (p_ids);
  delete from treadle.dispatches where dispatches.task_id = any (p_ids);
  delete from treadle.steps where steps.task_id = any (p_ids);
  delete from treadle.answers
  where answers.wait_id = any (
    array(select waits.id from treadle.waits where waits.task_id = any (p_ids))
  );
  delete from treadle.waits where waits.task_id = any (p_ids);
  delete from treadle.dependencies where dependencies.depends_on = any (p_ids);
  delete from treadle.dependencies where dependencies.task_id = any (p_ids);
  delete from treadle.dead_letters where dead_letters.task_id = any (p_ids);
  delete from treadle.harness_nudges where harness_nudges.task_id = any (p_ids);
  delete from treadle.harness_actions where harness_actions.task_id = any (p_ids);
  -- Unread events and emitted events are deleted by their own age.
  delete from treadle.events
  where
    events.task_id = any (p_ids) and events.key is null
    and (events.xid, events.id) <= (v_read.xid, v_read.id)
    and events.xid < pg_snapshot_xmin(pg_current_snapshot());
  delete from treadle.tasks where tasks.id = any (p_ids);
  get diagnostics v_gone = row_count;
  return v_gone;
end;
$$;

create or replace function treadle.prune_tasks(
  p_after  tid default '(0,0)',
  p_limit  integer default 1000,
  p_skip   uuid[] default '{}',
  out place tid,
  out pruned integer,
  out kept integer,
  out bad uuid[],
  out problems text[]
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found treadle.found_tasks := treadle.find_prunable(p_after, p_limit, p_skip);
  v_all   uuid[];
  v_unit  uuid[];
begin
  place := v_found.place;
  pruned := 0;
  bad := '{}';
  problems := '{}';
  kept := cardinality(v_found.ids);
  if kept = 0 then
    return;
  end if;

  v_all := treadle.lock_prunable(
    treadle.without_pinned(treadle.related_tasks(v_found.ids, p_skip))
  );
  v_all := treadle.without_pinned(v_all);
  begin
    pruned := treadle.prune_rows(v_all);
  exception when others then
    -- One of them failed: try each set separately, so that the others succeed.
    while v_all <> '{}' loop
      v_unit := treadle.prune_unit(v_all[1], v_all);
      begin
        pruned := pruned + treadle.prune_rows(v_unit);
      exception when others then
        bad := bad || v_unit[1];
        problems := problems || sqlerrm;
      end;
      v_all := array(
        select gone.id from unnest(v_all) as gone (id) where gone.id <> all (v_unit)
      );
    end loop;
  end;
  kept := greatest(kept - pruned, 0);
end;
$$;

comment on function treadle.prune_tasks(tid, integer, uuid[]) is
'Archive or delete ended tasks whose retention is over; returns where to continue.';

grant execute on function treadle.prune_tasks(tid, integer, uuid[]) to treadle_worker;
