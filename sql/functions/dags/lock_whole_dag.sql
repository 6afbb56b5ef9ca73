-- lock_whole_dag: lock the tasks of a DAG that have not ended, what depends on them, and the DAG.
--
-- Once it returns, nothing is added to the DAG until the transaction ends.
--
-- Concurrency: a task that was added before the DAG was locked makes it let go of the DAG and start
--              again, so that tasks come before DAGs here too.
-- Lock order:  tasks, dags.
-- Raises:      TR205 unknown DAG.

create or replace function treadle.lock_whole_dag(p_dag uuid)
returns treadle.dags
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  c_again constant text := 'TR999';
  v_dag    treadle.dags;
  v_live   uuid[];
  v_family uuid[];
begin
  loop
    v_live := array(
      select tasks.id from treadle.tasks
      where tasks.dag_id = p_dag and tasks.status not in ('completed', 'cancelled')
    );
    v_family := treadle.lock_family(v_live);
    begin
      perform treadle.lock_dags_of(v_family, p_dag);
      select dags.* into v_dag from treadle.dags where dags.id = p_dag;
      if not found then
        perform treadle.refuse_dag(p_dag);
      end if;
      if exists (
        select tasks.id from treadle.tasks
        where tasks.dag_id = p_dag and tasks.status not in ('completed', 'cancelled')
        except
        select locked.id from unnest(v_live) as locked (id)
      ) then
        raise exception using errcode = c_again, message = 'a task was added';
      end if;
      return v_dag;
    exception
      when sqlstate 'TR999' then
        null;
    end;
  end loop;
end;
$$;

comment on function treadle.lock_whole_dag(uuid) is
'Internal: holds a DAG and all that moves in it.';

revoke all on function treadle.lock_whole_dag(uuid) from public;
