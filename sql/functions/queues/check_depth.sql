-- check_depth: refuse new tasks beyond the depth limit of their queue.
--
-- Called after they were stored, by the statement that did. All that wait count: created, pending,
-- ready, retrying and blocked. What is in flight does not, and what comes back is never refused.
--
-- Concurrency: producers of a queue with a limit come one after the other: the row of its lock is
--              written, then its tasks are counted. Written, not only locked: under REPEATABLE READ
--              a count from before fails with 40001.
-- Lock order:  locks.
-- Raises:      TR105 queue full.

-- queue_depth: how many tasks wait in a queue that has a depth limit.
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
    perform treadle.refuse(
      format(
        'queue %s has no room for %s more: %s of at most %s tasks wait there',
        p_queue, p_added, v_depth - p_added, v_queue.max_depth
      ),
      jsonb_build_object('queue', p_queue, 'depth', v_depth - p_added, 'limit', v_queue.max_depth),
      case
        -- The servers set the limit of such a queue with every submission.
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
