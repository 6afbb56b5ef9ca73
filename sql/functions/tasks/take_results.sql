-- take_results: hand each completed result to its consumer, once.
--
-- For tasks enqueued with this consumer. Repeating a call with its token returns the same results.
--
-- Concurrency: rows locked by another taker are skipped.
-- Lock order:  tasks.
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
as $$
#variable_conflict use_column
declare
  v_token uuid := coalesce(p_token, gen_random_uuid());
begin
  if p_consumer is null or p_limit is null or p_limit not between 1 and 10000 then
    perform treadle.refuse(
      'take_results needs a consumer, and a limit of 1 to 10000',
      jsonb_build_object('argument', 'limit')
    );
  end if;

  if p_token is null or not exists (
    select from treadle.tasks
    where
      tasks.consumer = p_consumer and tasks.status = 'completed'
      and tasks.consumed_token = p_token
  ) then
    perform treadle.keep_durable();
    update treadle.tasks
    set consumed_at = treadle.clock(), consumed_token = v_token
    where tasks.ctid = any (
      array(
        select wanted.ctid
        from treadle.tasks as wanted
        where
          wanted.consumer = p_consumer and wanted.status = 'completed'
          and wanted.consumed_token is null
        order by wanted.completed_at
        limit p_limit
        for update skip locked
      )
    );
  end if;

  return query
  select
    tasks.id, tasks.queue, tasks.type, tasks.spec, tasks.output, tasks.decision_report,
    tasks.completed_by, tasks.completed_at
  from treadle.tasks
  where
    tasks.consumer = p_consumer and tasks.status = 'completed' and tasks.consumed_token = v_token
  order by tasks.completed_at, tasks.id;
end;
$$;

comment on function treadle.take_results(text, integer, uuid) is
'Take completed results of tasks enqueued for this consumer; each is handed out once.';

grant execute on function treadle.take_results(text, integer, uuid) to treadle_producer;
