-- wake_promoter: tell the promoter that something falls due before it would look.
--
-- Concurrency: a hint; the promoter looks every few seconds anyway.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.wake_promoter(timestamptz) is
'Internal: notifies task_due when a task falls due within five seconds.';

revoke all on function treadle.wake_promoter(timestamptz) from public;
