-- bulk_tasks: what a filter finds, up to a limit; the rest is left.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.bulk_tasks(
  p_filter  jsonb,
  p_states  text[],
  p_limit   integer
)
returns treadle.bulk_task[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_limit is null or p_limit not between 1 and 100000 then
    perform treadle.refuse(
      format('limit must be 1 to 100000, not %s', coalesce(p_limit::text, 'null')),
      jsonb_build_object('argument', 'limit'), 'Call again for the rest.'
    );
  end if;
  return array(
    select
      row(
        each.id, each.queue, each.type, each.status,
        case when each.at <= p_limit then 'found' else 'left' end,
        case when each.at > p_limit then 'beyond the limit: call again' end
      )::treadle.bulk_task
    from treadle.matching_tasks(p_filter, p_states) with ordinality
      as each (id, queue, type, status, at)
    order by each.at
  );
end;
$$;

comment on function treadle.bulk_tasks(jsonb, text[], integer) is
'Internal: tasks to decide about at once.';

revoke all on function treadle.bulk_tasks(jsonb, text[], integer) from public;
