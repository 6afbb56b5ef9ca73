-- tally_dags: count tasks that ended, or came back, in their DAGs; the last one ends its DAG.
--
-- Given one DAG, the state before and the state now for each task; states that are no end are
-- null. A DAG that ends is completed when something came out at a leaf, else cancelled.
--
-- Concurrency: the DAGs are locked in id order: of two last tasks the second sees the first.
-- Lock order:  dags (after tasks), then the history.
-- Raises:      nothing.

create or replace function treadle.tally_dags(
  p_dags  uuid[],
  p_was   text[],
  p_is    text[],
  p_now   timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_before treadle.dags[] := array(
    select dags
    from treadle.dags
    where dags.id = any (p_dags)
    order by dags.id
    for no key update
  );
begin
  with changes as (
    select
      given.id,
      count(*) filter (where given.became = 'completed') as completed,
      count(*) filter (where given.became = 'cancelled')
      - count(*) filter (where given.was = 'cancelled') as cancelled,
      count(*) filter (where given.became = 'dead_lettered')
      - count(*) filter (where given.was = 'dead_lettered') as dead_lettered
    from unnest(p_dags, p_was, p_is) as given (id, was, became)
    where given.id is not null
    group by given.id
  ),

  counted as (
    select
      before.*,
      before.completed + changes.completed as now_completed,
      before.cancelled + changes.cancelled as now_cancelled,
      before.dead_lettered + changes.dead_lettered as now_dead
    from unnest(v_before) as before
    inner join changes on before.id = changes.id
  ),

  judged as (
    select
      counted.*,
      case
        when counted.status = 'open' then 'open'
        when counted.now_completed + counted.now_cancelled = counted.tasks
          then treadle.dag_result(counted.id)
        when counted.now_dead > 0 then 'failed'
        else 'running'
      end as now_status
    from counted
  ),

  moved as (
    update treadle.dags
    set
      completed = judged.now_completed,
      cancelled = judged.now_cancelled,
      dead_lettered = judged.now_dead,
      status = judged.now_status,
      ended_at = case when judged.now_status in ('completed', 'cancelled') then p_now end
    from judged
    where dags.id = judged.id
    returning
      dags.*, judged.status as was, judged.completed as completed_before,
      judged.dead_lettered as dead_before
  )

  insert into treadle.events (at, kind, dag_id, data)
  select p_now, 'dag.' || news.kind, moved.id, jsonb_build_object(
    'name', moved.name, 'tasks', moved.tasks, 'completed', moved.completed,
    'cancelled', moved.cancelled, 'dead_lettered', moved.dead_lettered
  )
  from moved
  cross join lateral treadle.dag_news(
    moved.was, moved.status, moved.tasks, moved.completed_before, moved.completed,
    moved.dead_before, moved.dead_lettered
  ) as news (kind);
end;
$$;

comment on function treadle.tally_dags(uuid[], text[], text[], timestamptz) is
'Internal: keeps the counters and the state of DAGs, and raises their events.';

revoke all on function treadle.tally_dags(uuid[], text[], text[], timestamptz) from public;
