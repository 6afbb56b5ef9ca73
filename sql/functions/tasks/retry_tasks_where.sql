-- retry_tasks_where: retry the tasks that match a filter.
--
-- select * from treadle.retry_tasks_where('{"failure_class": "timeout"}', p_dry_run => true);
--
-- It retries dead letters, unless status names cancelled or retrying. Returns counts by queue, type
-- and old state. The verdict is found (dry run), retried, refused (why gives the reason), moved (it
-- no longer matches the filter), or left (beyond the limit). All in one transaction.
--
-- Concurrency: the tasks and their dependencies are locked as one set; then the filter is applied
-- again to the locked rows.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR203 unknown type.

create or replace function treadle.retry_tasks_where(
  p_filter   jsonb,
  p_note     text default null,
  p_actor    text default null,
  p_dry_run  boolean default false,
  p_limit    integer default 10000
)
returns table (queue text, type text, status text, verdict text, why text, tasks bigint)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_states text[] := treadle.check_filter(
    p_filter, array['dead_lettered', 'cancelled', 'retrying'], array['dead_lettered']
  );
  v_found  treadle.bulk_task[] := treadle.bulk_tasks(p_filter, v_states, p_limit);
  v_ids    uuid[];
begin
  if not p_dry_run then
    perform treadle.ensure_durable();
    v_ids := array(
      select each.id from unnest(v_found) as each where each.verdict = 'found'
    );
    -- Includes their dependencies, so that a cancelled dependency is noticed.
    perform treadle.lock_tasks(v_ids || treadle.dependencies_of(v_ids));
    v_ids := array(
      select each.id from treadle.matching_tasks(p_filter, v_states, v_ids) as each
    );
    v_found := treadle.retry_bulk(
      treadle.record_bulk_results(
        v_found, v_ids, 'retried'
      ), coalesce(p_actor, session_user), p_note
    );
  end if;
  return query select counts.* from treadle.count_bulk(v_found) as counts;
end;
$$;

comment on function treadle.retry_tasks_where(jsonb, text, text, boolean, integer) is
'Retry all tasks that match a filter; p_dry_run only counts them.';

grant execute on function treadle.retry_tasks_where(jsonb, text, text, boolean, integer) to
treadle_operator;
