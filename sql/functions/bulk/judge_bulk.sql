-- judge_bulk: write down what became of the tasks that were decided about at once.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.judge_bulk(
  p_found    treadle.bulk_task[],
  p_ids      uuid[],
  p_verdict  text
)
returns treadle.bulk_task[]
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    array(
      select
        row(
          each.id, each.queue, each.type, each.status,
          case
            when each.verdict <> 'found' then each.verdict
            when each.id in (select own.id from unnest(p_ids) as own (id)) then p_verdict
            else 'moved'
          end,
          case
            when each.verdict <> 'found' then each.why
            when each.id not in (select own.id from unnest(p_ids) as own (id))
              then 'it is no longer what the filter asks for'
          end
        )::treadle.bulk_task
      from unnest(p_found) as each
    )
$$;

comment on function treadle.judge_bulk(treadle.bulk_task[], uuid[], text) is
'Internal: those with these ids have the verdict, the others have moved on.';

revoke all on function treadle.judge_bulk(treadle.bulk_task[], uuid[], text) from public;
