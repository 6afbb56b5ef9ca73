-- wake_queues: tell idle workers that tasks of these queues can be claimed.
--
-- NOTIFY makes commits wait for each other across the cluster, so it is sent once per queue, and
-- only where somebody waits. It is a hint: workers look by themselves as well.
--
-- Concurrency: a worker that goes idle at this moment looks again shortly after.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.wake_queues(p_queues text[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_notify('task_ready.' || idle_queues.queue, '')
  from treadle.idle_queues
  where idle_queues.queue = any (p_queues) and idle_queues.idle_until > clock_timestamp();
end;
$$;

comment on function treadle.wake_queues(text[]) is
'Internal: notifies the channel of each queue on which a worker waits.';

revoke all on function treadle.wake_queues(text[]) from public;
