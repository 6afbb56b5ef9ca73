-- cancel_tasks_where: cancel the tasks that match a filter, and their dependents.
--
-- select * from treadle.cancel_tasks_where('{"queue": "mail", "tag": "old"}', p_dry_run => true);
--
-- Returns counts by queue, type and old state. The verdict is found (dry run), cancelled, cascaded
-- (it depended on one of them), moved (it no longer matches the filter), or left (beyond the
-- limit). All in one transaction.
--
-- Concurrency: the tasks and those cancelled with them are locked as one set; then the filter is
-- applied again to the locked rows.
-- Lock order:  tasks, dags, then the history.
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR203 unknown type.

create or replace function treadle.cancel_tasks_where(
  p_filter   jsonb,
  p_reason   text default null,
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
  c_live   constant text[] := array[
    'created', 'pending', 'ready', 'claimed', 'running', 'validating', 'blocked', 'retrying'
  ];
  v_states text[] := treadle.check_filter(p_filter, c_live, c_live);
  v_found  treadle.bulk_task[] := treadle.bulk_tasks(p_filter, v_states, p_limit);
  v_ids    uuid[];
  v_downstream   uuid[];
begin
  if not p_dry_run then
    perform treadle.ensure_durable();
    v_ids := array(
      select each.id from unnest(v_found) as each where each.verdict = 'found'
    );
    perform treadle.lock_downstream(v_ids);
    v_ids := array(
      select each.id from treadle.matching_tasks(p_filter, v_states, v_ids) as each
    );
    v_downstream := treadle.downstream_of(v_ids);
    v_found := treadle.record_bulk_results(v_found, v_ids, 'cancelled') || array(
      select row(task.id, task.queue, task.type, task.status, 'cascaded', null)::treadle.bulk_task
      from treadle.tasks as task
      where
        task.id = any (v_downstream) and task.completed_at is null
        and task.id not in (select own.id from unnest(v_ids) as own (id))
    );
    perform gone.id
    from treadle.cancel_tasks(v_ids, p_reason, coalesce(p_actor, session_user)) as gone
    where v_ids <> '{}';
  end if;
  return query select counts.* from treadle.count_bulk(v_found) as counts;
end;
$$;

comment on function treadle.cancel_tasks_where(jsonb, text, text, boolean, integer) is
'Cancel all tasks that match a filter; p_dry_run only counts them.';

grant execute on function treadle.cancel_tasks_where(jsonb, text, text, boolean, integer) to
treadle_operator;
