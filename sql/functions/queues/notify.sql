-- notify: notify idle workers and the promoter.

-- notify_workers: notify idle workers that tasks of these queues can be claimed.
--
-- NOTIFY serializes commits across the cluster, so it is sent once per queue and only if a worker
-- waits. It is a hint: workers also poll.
--
-- Concurrency: a worker that becomes idle at this moment polls shortly after.
create or replace function treadle.notify_workers(p_queues text[])
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

-- notify_promoter: notify the promoter of something that is due before its next poll.
--
-- Concurrency: the notification is a hint; the promoter also polls every few seconds.
create or replace function treadle.notify_promoter(p_due_at timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_due_at < treadle.clock() + interval '5 seconds' then
    perform pg_notify('treadle_due', '');
  end if;
end;
$$;

-- mark_idle: record that a worker waits for tasks of these queues.
--
-- Written at most once in 15 seconds per queue, whatever the number of workers.
--
-- Concurrency: queues in order of name; a row that another worker is writing is skipped.
-- Lock order:  idle_queues.
create or replace function treadle.mark_idle(p_queues text[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
begin
  if (
    select count(*)
    from treadle.idle_queues
    where
      idle_queues.queue = any (p_queues)
      and idle_queues.idle_until > v_now + interval '15 seconds'
  ) = cardinality(p_queues) then
    return;
  end if;

  insert into treadle.idle_queues (queue, idle_until)
  select distinct given.queue, v_now + interval '30 seconds'
  from unnest(p_queues) as given (queue)
  order by given.queue
  on conflict (queue) do update set idle_until = excluded.idle_until;
end;
$$;
