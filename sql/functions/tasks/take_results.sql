-- take_results: return the completed results for a consumer, each once.
--
-- The consumer is an option of the task. A repeated call with the same token returns the same
-- results.
--
-- Concurrency: skips rows locked by another session.
-- Lock order:  results.
-- Raises:      TR001 invalid argument.

create or replace function treadle.take_results(
  p_consumer  text,
  p_limit     integer default 100,
  p_token     uuid default null
)
returns table (
  id uuid, queue text, type text, spec jsonb, output jsonb, decision_report jsonb,
  completed_by text, completed_at timestamptz
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_token uuid := coalesce(p_token, gen_random_uuid());
begin
  if p_consumer is null or p_limit is null or p_limit not between 1 and 10000 then
    perform treadle.raise_error(
      'take_results needs a consumer and a limit of 1 to 10000',
      jsonb_build_object('argument', 'limit')
    );
  end if;

  if p_token is null or not exists (
    select from treadle.results
    where results.consumer = p_consumer and results.consumed_token = p_token
  ) then
    perform treadle.ensure_durable();
    update treadle.results
    set consumed_at = treadle.clock(), consumed_token = v_token
    where results.ctid = any (
      array(
        select wanted.ctid
        from treadle.results as wanted
        where wanted.consumer = p_consumer and wanted.consumed_token is null
        order by wanted.completed_at
        limit p_limit
        for update skip locked
      )
    );
  end if;

  return query
  select
    tasks.id, tasks.queue, tasks.type, tasks.spec, tasks.output, results.decision_report,
    tasks.completed_by, tasks.completed_at
  from treadle.results
  inner join treadle.tasks on results.task_id = tasks.id
  where results.consumer = p_consumer and results.consumed_token = v_token
  order by tasks.completed_at, tasks.id;
end;
$$;

comment on function treadle.take_results(text, integer, uuid) is
'Take completed results of tasks enqueued for this consumer; each is returned once.';

grant execute on function treadle.take_results(text, integer, uuid) to treadle_producer;
