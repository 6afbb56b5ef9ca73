-- submit_push: put a prompt at the end of the queue `push`.
--
-- select * from treadle.submit_push('{"prompt": "Say hello"}', 'cli', null, 50, 3);
--
-- The queue and its type are made on first use; p_max_depth and p_max_attempts are its limits from
-- then on, empty leaves them as they are. Other fields of the request are left out.
--
-- Concurrency: submitters come one after the other, so that positions are exact: each takes its
--              place in the line once it holds the lock of the queue's depth. Its lane is made
--              before: who makes it at the same time may wait for that lock.
-- Lock order:  lanes, locks, tasks: nobody who holds a task of the queue waits for its lock but
--              who has just made it.
-- Raises:      TR001 invalid argument, TR002 too large, TR105 queue full.

create or replace function treadle.submit_push(
  p_request       jsonb,
  p_source        text,
  p_source_job    text default null,
  p_max_depth     integer default null,
  p_max_attempts  integer default null
)
returns table (
  queue_id text, id uuid, "position" integer, state text, depth integer -- noqa: RF06
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_spec jsonb := treadle.push_spec(p_request);
  v_kind treadle.tasks;
  v_id   uuid;
  v_full jsonb;
begin
  perform treadle.keep_durable();
  perform treadle.open_push(p_max_depth, p_max_attempts);
  v_kind := treadle.prepare_task(
    jsonb_strip_nulls(
      jsonb_build_object(
        'queue', 'push', 'type', 'prompt', 'source', p_source, 'source_job', p_source_job
      )
    ),
    treadle.clock()
  );

  insert into treadle.locks (name) values ('depth:push')
  on conflict (name) do update set touched = locks.touched + 1;
  v_kind.created_at := treadle.clock();
  v_kind.rank := treadle.push_rank(v_kind, v_kind.created_at);
  begin
    select made.id into v_id from treadle.insert_tasks(v_kind, array[v_spec]) as made;
  exception
    when sqlstate 'TR105' then
      get stacked diagnostics v_full = pg_exception_detail;
      perform treadle.refuse(
        format(
          'Queue is full. Please try again later. %s of at most %s tasks wait.',
          v_full ->> 'depth', v_full ->> 'limit'
        ),
        v_full || jsonb_build_object('reason', 'queue_full', 'max_size', v_full -> 'limit'),
        'Try again later, or start the server with a larger TREADLE_QUEUE_MAX_SIZE.',
        'TR105'
      );
  end;

  return query
  select
    entry.queue_id, entry.id, entry.position, entry.state,
    (select max(line.position) from treadle.push_queue as line where line.completed_at is null)
  from treadle.push_queue as entry
  where entry.id = v_id;
end;
$$;

comment on function treadle.submit_push(jsonb, text, text, integer, integer) is
'Queue a prompt for the agents that are pushed to; says its place in the line and the depth.';

revoke all on function treadle.submit_push(jsonb, text, text, integer, integer) from public;
grant execute on function treadle.submit_push(jsonb, text, text, integer, integer) to
treadle_producer, treadle_worker;
