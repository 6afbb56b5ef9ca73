-- prune_tasks: let finished tasks go whose time is over, with all that belongs to them.
--
-- select * from treadle.prune_tasks();
--
-- It looks at a stretch of the table from p_after on and says where to go on; place is null at the
-- end of the table. No index is kept for this: a completion costs nothing more. What belongs
-- together goes together, see kin_of, and what is still needed stays, see pinned_tasks. A set that
-- cannot go does not stop the others: one of its tasks is in bad, and all of it stays when that id
-- is passed in p_skip.
--
-- Concurrency: rows locked by others are skipped, never waited for; all is judged again on the
--              locked rows. Any number may run at once.
-- Lock order:  tasks, dags, budgets, then the history.

-- find_prunable: tasks whose time is over, in the order of their places, from a place on.
--
-- At most p_limit of them, from at most 2048 pages; place is where the next look begins, null at
-- the end of the table. In a table where no queue lets anything go, that is at once.
--
-- Concurrency: reads.
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

-- kin_of: tasks, and all whose time is over that have to go with them.
--
-- The tasks of a DAG go as a whole. A task and those that it has made go together too: one that is
-- retried wants to find them.
--
-- Concurrency: reads.
create or replace function treadle.kin_of(p_ids uuid[], p_skip uuid[])
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
      select kin.id
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
      ) as kin
      where kin.id <> all (v_all) and kin.id <> all (p_skip)
    );
    exit when v_last = '{}';
    v_all := v_all || v_last;
  end loop;
  return v_all;
end;
$$;

-- unit_of: one task and those of a set that belong to it, over any number of steps.
--
-- Concurrency: reads; the caller holds them.
create or replace function treadle.unit_of(p_id uuid, p_of uuid[])
returns uuid[]
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select kin.id
    from unnest(treadle.kin_of(array[p_id], '{}')) with ordinality as kin (id, at)
    where kin.id = any (p_of)
    order by kin.at
  )
$$;

-- hold_prunable: lock tasks that are to go, and their DAGs; returns those that it has.
--
-- Concurrency: what others hold is left out, not waited for. The time is judged again on the
--              locked row: a task that was retried meanwhile is not among them.
-- Lock order:  tasks, dags.
create or replace function treadle.hold_prunable(p_ids uuid[])
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

-- prune_rows: archive tasks where their queues say so, and delete them with all that is theirs.
--
-- The decisions of people about dead letters stay. Money that was spent is summed up by the hour.
-- Files are doomed where the tasks are deleted: see tg_tasks__doom.
--
-- Concurrency: the caller holds the tasks and their DAGs, and has found nothing that needs them.
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
  v_read treadle.event_readers := treadle.read_by_all();
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
  perform treadle.sum_spend(p_ids);

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
  -- What a reader has not seen yet, and what was emitted for others, goes by its own age.
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

  v_all := treadle.hold_prunable(
    treadle.unpinned(treadle.kin_of(v_found.ids, p_skip))
  );
  v_all := treadle.unpinned(v_all);
  begin
    pruned := treadle.prune_rows(v_all);
  exception when others then
    -- One of them is bad: each set that belongs together on its own, so that the rest go.
    while v_all <> '{}' loop
      v_unit := treadle.unit_of(v_all[1], v_all);
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
'Archive or drop finished tasks that their queues keep no longer; says where to go on.';

grant execute on function treadle.prune_tasks(tid, integer, uuid[]) to treadle_worker;
