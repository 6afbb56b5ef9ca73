-- notify: notify idle workers and the promoter.

-- wake_queues: tell idle workers that tasks of these queues can be claimed.
--
-- NOTIFY makes commits wait for each other across the cluster, so it is sent once per queue, and
-- only where somebody waits. It is a hint: workers look by themselves as well.
--
-- Concurrency: a worker that goes idle at this moment looks again shortly after.
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

-- wake_promoter: tell the promoter that something falls due before it would look.
--
-- Concurrency: a hint; the promoter looks every few seconds anyway.
create or replace function treadle.wake_promoter(p_due_at timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_due_at < treadle.clock() + interval '5 seconds' then
    perform pg_notify('task_due', '');
  end if;
end;
$$;

-- mark_idle: say that a worker waits for tasks of these queues.
--
-- Written at most once in 15 seconds for a queue, whatever the number of workers.
--
-- Concurrency: queues in order of name; a row that another worker is writing is left to it.
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
