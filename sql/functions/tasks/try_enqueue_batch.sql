-- try_enqueue_batch: enqueue tasks like enqueue_batch; a full queue is returned as a problem.
--
-- For requests over HTTP. A producer in a transaction of its own calls enqueue_batch: the error of
-- a full queue rolls its other changes back.
--
-- Concurrency: as enqueue_batch.
-- Lock order:  as enqueue_batch.
-- Raises:      what enqueue_batch raises, except TR105 queue full.

create or replace function treadle.try_enqueue_batch(
  p_queue    text,
  p_type     text,
  p_specs    jsonb[],
  p_options  jsonb default '{}',
  p_keys     text[] default null
)
returns table (id uuid, created boolean, problem jsonb)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_detail text;
  v_hint   text;
begin
  -- Without a limit there is no refusal, and no need for a subtransaction.
  if not exists (
    select from treadle.queues where queues.name = p_queue and queues.max_depth is not null
  ) then
    return query
    select made.id, made.created, null::jsonb
    from treadle.enqueue_batch(p_queue, p_type, p_specs, p_options, p_keys) as made;
    return;
  end if;

  begin
    return query
    select made.id, made.created, null::jsonb
    from treadle.enqueue_batch(p_queue, p_type, p_specs, p_options, p_keys) as made;
  exception
    when sqlstate 'TR105' then
      get stacked diagnostics v_detail = pg_exception_detail, v_hint = pg_exception_hint;
      problem := treadle.problem(sqlstate, sqlerrm, v_detail, v_hint);
      return next;
  end;
end;
$$;

comment on function treadle.try_enqueue_batch(text, text, jsonb[], jsonb, text[]) is
'Enqueue many tasks of one kind; returns their ids, or the problem if the queue is full.';

grant execute on function treadle.try_enqueue_batch(text, text, jsonb[], jsonb, text[]) to
treadle_producer, treadle_worker;
