-- kin_of: tasks, and all whose time is over that have to go with them.
--
-- The tasks of a DAG go as a whole. A task and those that it has made go together too: one that is
-- retried wants to find them.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.kin_of(uuid[], uuid[]) is
'Internal: tasks with the rest of their DAGs, their parents and their children.';

revoke all on function treadle.kin_of(uuid[], uuid[]) from public;
