-- check_depth: reject new tasks beyond the depth limit of their queue.
--
-- Called after the tasks were stored, by the same statement. All waiting tasks count: created,
-- pending, ready, retrying and blocked. Running tasks do not count, and a task that returns to the
-- queue is never rejected.
--
-- Concurrency: producers of a queue with a limit run one after another: they update the lock row of
-- the queue and then count its tasks. The row is updated, not only locked, so that an older
-- snapshot under REPEATABLE READ fails with 40001.
-- Lock order:  locks.
-- Raises:      TR105 queue full.

-- queue_depth: return how many tasks wait in a queue that has a depth limit.
create or replace function treadle.queue_depth(p_queue text)
returns integer
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select count(*)::integer
  from treadle.tasks
  where
    tasks.queue = p_queue and tasks.capped
    and tasks.status in ('created', 'pending', 'ready', 'retrying', 'blocked')
$$;

create or replace function treadle.check_depth(p_queue text, p_added bigint)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue treadle.queues;
  v_depth bigint;
begin
  insert into treadle.locks (name) values ('depth:' || p_queue)
  on conflict (name) do update set touched = locks.touched + 1;
  select queues.* into v_queue from treadle.queues where queues.name = p_queue;
  v_depth := treadle.queue_depth(p_queue);
  if v_depth > v_queue.max_depth then
    perform treadle.raise_error(
      format(
        'queue %s has no room for %s more: %s of at most %s tasks are waiting',
        p_queue, p_added, v_depth - p_added, v_queue.max_depth
      ),
      jsonb_build_object('queue', p_queue, 'depth', v_depth - p_added, 'limit', v_queue.max_depth),
      case
        -- The HTTP server sets the limit of such a queue with every submission.
        when v_queue.assignment = 'dispatch' then
          'Try again later, or start the server with a larger TREADLE_QUEUE_MAX_SIZE.'
        else
          format(
            'Try again later, or raise the limit: '
            'select treadle.define_queue(%L, ''{"max_depth": %s}'')',
            p_queue, v_queue.max_depth * 2::bigint
          )
      end,
      'TR105'
    );
  end if;
end;
$$;
