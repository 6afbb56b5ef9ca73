-- cancel_letters: give dead letters up, and what depends on them.
--
-- Concurrency: the caller holds the tasks and what falls with them.
-- Lock order:  tasks, dags, then the history.
-- Raises:      nothing.

create or replace function treadle.cancel_letters(
  p_found  treadle.bulk_task[],
  p_actor  text,
  p_note   text
)
returns treadle.bulk_task[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.resolve_task(each.id, 'cancel', '{}', p_actor, p_note)
  from unnest(p_found) as each;
  perform treadle.settle_ends(array_agg(each.id), treadle.clock(), 'dead_lettered')
  from unnest(p_found) as each
  having count(*) > 0;
  return array(
    select
      row(each.id, each.queue, each.type, each.status, 'cancelled', null)::treadle.bulk_task
    from unnest(p_found) as each
  );
end;
$$;

comment on function treadle.cancel_letters(treadle.bulk_task[], text, text) is
'Internal: cancels tasks that gave up.';

revoke all on function treadle.cancel_letters(treadle.bulk_task[], text, text) from public;
