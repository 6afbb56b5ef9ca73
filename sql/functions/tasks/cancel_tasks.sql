-- cancel_tasks: end tasks that are not wanted any more, and what depends on them.
--
-- Once it returns, no claim starts and no result is accepted. Of each task it says cancelled,
-- already (it was), ended (too late) or unknown; after those come the tasks that fell with them,
-- as cascaded: dependents over edges that are not optional, and subtasks.
--
-- Concurrency: rows are locked in id order; the agent of a running task is told at once.
-- Lock order:  tasks, dags, then the history.
-- Raises:      nothing.

create or replace function treadle.cancel_tasks(
  p_ids     uuid[],
  p_reason  text default null,
  p_actor   text default null
)
returns table (id uuid, verdict text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_ids  uuid[];
  v_held treadle.tasks[];
begin
  perform treadle.keep_durable();
  -- Two statements: the rows are to be read as they are once they are locked.
  v_ids := treadle.lock_downstream(p_ids);
  v_held := array(
    select tasks
    from treadle.tasks
    where tasks.id = any (v_ids) and tasks.completed_at is null
    order by tasks.id
  );
  if v_held <> '{}' then
    perform treadle.cancel_rows(v_held, p_ids, p_reason, coalesce(p_actor, session_user));
  end if;

  -- As sets, not as joins: many may be cancelled at once.
  return query
  select given.id, case
    when given.id in (select held.id from unnest(v_held) as held) then 'cancelled'
    when tasks.status = 'cancelled' then 'already'
    when tasks.id is not null then 'ended'
    else 'unknown'
  end
  from unnest(p_ids) with ordinality as given (id, at)
  left join treadle.tasks on given.id = tasks.id
  order by given.at;

  return query
  select held.id, 'cascaded'
  from unnest(v_held) as held
  where held.id not in (
    select asked.id from unnest(p_ids) as asked (id) where asked.id is not null
  );
end;
$$;

comment on function treadle.cancel_tasks(uuid[], text, text) is
'Cancel tasks that have not ended, and their dependents; says of each what happened.';

revoke all on function treadle.cancel_tasks(uuid[], text, text) from public;
grant execute on function treadle.cancel_tasks(uuid[], text, text) to
treadle_producer, treadle_operator;
