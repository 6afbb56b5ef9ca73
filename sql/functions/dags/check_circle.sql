-- check_circle: refuse edges from a task onto others that wait for it already.
--
-- Concurrency: the caller holds the row `edges` of locks, so that no other edge comes in between.
-- Lock order:  none.
-- Raises:      TR103 cycle.

create or replace function treadle.check_circle(p_task uuid, p_on uuid[])
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
  v_closing uuid;
begin
  with recursive upstream as (
    select given.id, given.id as first from unnest(p_on) as given (id)
    union
    select dependencies.depends_on, upstream.first
    from upstream
    inner join treadle.dependencies on upstream.id = dependencies.task_id
    where dependencies.met_at is null and upstream.id <> p_task
  )

  select upstream.first into v_closing from upstream where upstream.id = p_task limit 1;
  if found then
    perform treadle.refuse(
      format(
        'task %s cannot depend on %s, which waits for it', p_task,
        case when v_closing = p_task then 'itself' else v_closing::text end
      ),
      jsonb_build_object('task_id', p_task, 'depends_on', v_closing),
      'Take a dependency away first, or leave this one out.',
      'TR103'
    );
  end if;
end;
$$;

comment on function treadle.check_circle(uuid, uuid[]) is
'Internal: looks up the dependencies for the task itself.';

revoke all on function treadle.check_circle(uuid, uuid[]) from public;
