-- set_priority_where: change the priority of the waiting tasks that match a filter.
--
-- select * from treadle.set_priority_where('{"tag": "urgent"}', p_tier => 'critical',
--   p_dry_run => true);
--
-- Returns counts by queue, type and state. The verdict is found (dry run), prioritised, already (it
-- has this priority), moved (it no longer matches the filter), or left (beyond the limit). All in
-- one transaction.
--
-- Concurrency: the tasks are locked in id order; then the filter is applied again to the locked
-- rows.
-- Lock order:  tasks, then the history.
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR203 unknown type.

create or replace function treadle.set_priority_where(
  p_filter    jsonb,
  p_priority  integer default null,
  p_tier      text default null,
  p_urgency   integer default null,
  p_reason    text default null,
  p_actor     text default null,
  p_dry_run   boolean default false,
  p_limit     integer default 10000
)
returns table (queue text, type text, status text, verdict text, why text, tasks bigint)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_actor    text := coalesce(p_actor, session_user);
  v_priority smallint := treadle.chosen_priority(p_priority, p_tier, p_urgency);
  v_states   text[] := treadle.check_filter(
    p_filter, treadle.waiting_states(), treadle.waiting_states()
  );
  v_found    treadle.bulk_task[] := treadle.bulk_tasks(p_filter, v_states, p_limit);
  v_ids      uuid[];
  v_changed  uuid[];
begin
  perform treadle.check_actor(v_actor, p_reason);
  if not p_dry_run then
    perform treadle.ensure_durable();
    v_ids := array(
      select each.id from unnest(v_found) as each where each.verdict = 'found'
    );
    perform treadle.lock_tasks(v_ids);
    v_ids := array(
      select each.id from treadle.matching_tasks(p_filter, v_states, v_ids) as each
    );
    v_changed := treadle.prioritise_rows(v_ids, v_priority, p_reason, v_actor);
    v_found := array(
      select
        row(
          each.id, each.queue, each.type, each.status,
          case
            when
              each.verdict = 'prioritised'
              and each.id not in (select own.id from unnest(v_changed) as own (id))
              then 'already'
            else each.verdict
          end,
          each.why
        )::treadle.bulk_task
      from unnest(treadle.record_bulk_results(v_found, v_ids, 'prioritised')) as each
    );
  end if;
  return query select counts.* from treadle.count_bulk(v_found) as counts;
end;
$$;

comment on function treadle.set_priority_where(
  jsonb, integer, text, integer, text, text, boolean, integer
) is 'Change the priority of all waiting tasks that match a filter; p_dry_run only counts them.';

grant execute on function treadle.set_priority_where(
  jsonb, integer, text, integer, text, text, boolean, integer
) to treadle_operator;
