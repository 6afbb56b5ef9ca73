-- check_room: refuse one more step of a task that remembers too much already.
--
-- A claim carries all steps of a task, and one json value must hold them. What came from people
-- and events finds room after the handler's own steps found none any more.
--
-- Concurrency: the caller holds the task.
-- Lock order:  none.
-- Raises:      TR002 too large.

create or replace function treadle.check_room(p_task uuid, p_kind text, p_output jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  c_steps constant integer := 10000;
  v_max   bigint := case when p_kind in ('step', 'sleep') then 33554432 else 41943040 end;
  v_count bigint;
  v_bytes bigint;
begin
  select count(*), coalesce(sum(pg_column_size(steps.output)), 0)
  into v_count, v_bytes
  from treadle.steps
  where steps.task_id = p_task;

  v_bytes := v_bytes + coalesce(pg_column_size(p_output), 0);
  -- Nothing is compressed to less than a 255th, so most need not be unpacked to be measured.
  if v_bytes * 255 > v_max then
    select coalesce(pg_column_size(p_output #> '{}'), 0)
      + coalesce(sum(pg_column_size(steps.output #> '{}')), 0)
    into v_bytes
    from treadle.steps
    where steps.task_id = p_task;
  end if;

  if v_count >= c_steps or v_bytes > v_max then
    perform treadle.refuse(
      case
        when v_count >= c_steps then format('task %s has %s steps, no more fit', p_task, v_count)
        else format(
          'the steps of task %s would have %s bytes, %s are allowed', p_task, v_bytes, v_max
        )
      end,
      jsonb_build_object(
        'task_id', p_task, 'steps', v_count, 'bytes', v_bytes, 'max_bytes', v_max
      ),
      'Store large outputs elsewhere and return references; give some of the work to subtasks.',
      'TR002'
    );
  end if;
end;
$$;

comment on function treadle.check_room(uuid, text, jsonb) is
'Internal: refuses a step beyond what a claim can carry.';

revoke all on function treadle.check_room(uuid, text, jsonb) from public;
