-- open_push: make the queue `push` and the type of its tasks, or give the queue other limits.
--
-- A waiting task overtakes a hundred points of priority in six seconds: first in, first out. The
-- type has no breaker: whether an agent can be reached is looked at agent by agent. There are no
-- poison pills: a prompt has all its attempts, whichever agents lose it.
--
-- Concurrency: reads only, where all is as it should be.
-- Lock order:  task_types, queues; with the first max_depth the tasks, see define_queue.
-- Raises:      TR001 invalid argument.

create or replace function treadle.open_push(
  p_max_depth     integer default null,
  p_max_attempts  integer default null
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue treadle.queues;
begin
  select queues.* into v_queue from treadle.queues where queues.name = 'push';
  if not exists (select from treadle.task_types where task_types.name = 'prompt') then
    perform treadle.define_type(
      'prompt',
      '{"description": "Ask an agent by its own interface", "breaker": {"threshold": 0}}'
    );
  end if;

  if v_queue.max_depth is null or not v_queue.retry ? 'poison' then
    perform treadle.define_queue(
      'push',
      jsonb_build_object(
        'ageing_rate', 1000,
        'max_depth', coalesce(p_max_depth, v_queue.max_depth, 50),
        'max_attempts', coalesce(p_max_attempts, v_queue.max_attempts, 3),
        'retry', '{"poison": false}' || coalesce(v_queue.retry, '{}')
      )
    );
  elsif v_queue.max_depth <> p_max_depth or v_queue.max_attempts <> p_max_attempts then
    perform treadle.define_queue(
      'push',
      jsonb_strip_nulls(
        jsonb_build_object('max_depth', p_max_depth, 'max_attempts', p_max_attempts)
      )
    );
  end if;
end;
$$;

comment on function treadle.open_push(integer, integer) is
'Internal: makes the queue `push`, with these limits where they are given.';

revoke all on function treadle.open_push(integer, integer) from public;
