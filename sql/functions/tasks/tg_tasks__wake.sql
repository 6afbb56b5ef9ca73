-- tg_tasks__wake: after an insert, wake who waits for the new tasks.
--
-- One pass over the new rows of a statement, and none at all while nobody is idle.
--
-- Concurrency: see wake_queues.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.tg_tasks__wake()
returns trigger
language plpgsql
volatile
security definer
set search_path = ''
as $$
begin
  if exists (
    select from treadle.idle_queues where idle_queues.idle_until > clock_timestamp()
  ) then
    perform treadle.wake_queues(
      array(select distinct added.queue from added where added.status = 'ready')
    );
  end if;
  perform treadle.wake_promoter(min(added.run_at)) from added where added.status = 'pending';
  return null;
end;
$$;

comment on function treadle.tg_tasks__wake() is 'Trigger: notifies idle workers of new tasks.';

revoke all on function treadle.tg_tasks__wake() from public;
