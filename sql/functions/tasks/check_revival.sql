-- check_revival: refuse to bring tasks back that would wait for one that was cancelled.
--
-- Concurrency: the caller holds the tasks.
-- Lock order:  none.
-- Raises:      TR102 illegal transition.

create or replace function treadle.check_revival(p_ids uuid[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_stuck record;
begin
  select tasks.id, tasks.dag_id, gone.id as gone, gone.name
  into v_stuck
  from unnest(p_ids) as given (id)
  inner join treadle.tasks on given.id = tasks.id
  inner join treadle.dependencies on tasks.id = dependencies.task_id
  inner join treadle.tasks as gone on dependencies.depends_on = gone.id
  where
    tasks.completed_at is null and dependencies.met_at is null and gone.status = 'cancelled'
  order by tasks.id, gone.id
  limit 1;
  if found then
    perform treadle.refuse(
      format(
        'task %s depends on %s, which was cancelled', v_stuck.id,
        coalesce(v_stuck.name, v_stuck.gone::text)
      ),
      jsonb_build_object('task_id', v_stuck.id, 'depends_on', v_stuck.gone),
      case
        when v_stuck.dag_id is null then 'Retry that task first.'
        else format('Retry that task first, or all: select treadle.retry_dag(%L)', v_stuck.dag_id)
      end,
      'TR102'
    );
  end if;
end;
$$;

comment on function treadle.check_revival(uuid[]) is
'Internal: tasks that are retried must be able to run.';

revoke all on function treadle.check_revival(uuid[]) from public;
