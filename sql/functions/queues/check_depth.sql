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

create or replace function treadle.check_depth(p_queue text, p_added bigint)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_max   integer;
  v_depth bigint;
begin
  insert into treadle.locks (name) values ('depth:' || p_queue)
  on conflict (name) do update set touched = locks.touched + 1;
  select queues.max_depth into v_max from treadle.queues where queues.name = p_queue;
  select count(*)
  into v_depth
  from treadle.tasks
  where
    tasks.queue = p_queue and tasks.capped
    and tasks.status in ('created', 'pending', 'ready', 'retrying', 'blocked');
  if v_depth > v_max then
    perform treadle.refuse(
      format(
        'queue %s has no room for %s more: %s of at most %s tasks wait there',
        p_queue, p_added, v_depth - p_added, v_max
      ),
      jsonb_build_object('queue', p_queue, 'depth', v_depth - p_added, 'limit', v_max),
      case
        -- The servers set its limit with every submission.
        when p_queue = 'push' then
          'Try again later, or start the server with a larger TREADLE_QUEUE_MAX_SIZE.'
        else
          format(
            'Try again later, or raise the limit: '
            'select treadle.define_queue(%L, ''{"max_depth": %s}'')',
            p_queue, v_max * 2::bigint
          )
      end,
      'TR105'
    );
  end if;
end;
$$;
