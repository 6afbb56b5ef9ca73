-- oldest_open_at: when the oldest task was made that has not ended; now where there is none.
--
-- It may still begin to wait for what was emitted since. Reads the whole table: once a round.
--
-- Concurrency: reads.

create or replace function treadle.oldest_open_at()
returns timestamptz
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if treadle.old_before('events') is null then
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
'How far back emitted events may still be wanted; null where events are kept for ever.';

grant execute on function treadle.oldest_open_at() to treadle_worker;
