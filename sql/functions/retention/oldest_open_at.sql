-- oldest_open_at: return when the oldest open task was created; the current time if there is none.
--
-- Such a task may still start to wait for events emitted since. It reads the whole table, once per
-- round.

create or replace function treadle.oldest_open_at()
returns timestamptz
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if treadle.retention_cutoff('events') is null then
    return null;
  end if;
  return (
    select coalesce(min(tasks.created_at), treadle.clock())
    from treadle.tasks
    where tasks.completed_at is null
  );
end;
$$;

comment on function treadle.oldest_open_at() is
'How far back emitted events may still be needed; null if events are kept forever.';

grant execute on function treadle.oldest_open_at() to treadle_worker;
