-- enqueue_task: enqueue one task and get its id.
--
-- select treadle.enqueue_task('default', 'code', '{"prompt": "..."}');
-- select treadle.enqueue_task('default', 'code', '{}', p_priority => 10, p_delay_s => 60);
--
-- With p_dedupe and no key, the key is made from the content: the same work is not queued twice.
--
-- Concurrency: part of the caller's transaction: the task is there exactly if it commits.
-- Lock order:  lanes, tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR202 unknown queue, TR203 unknown type.

create or replace function treadle.enqueue_task(
  p_queue            text,
  p_type             text,
  p_spec             jsonb default '{}',
  p_priority         integer default null,
  p_run_at           timestamptz default null,
  p_delay_s          double precision default null,
  p_idempotency_key  text default null,
  p_dedupe           boolean default false,
  p_options          jsonb default '{}'
)
returns uuid
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select made.id
  from treadle.enqueue_batch(
    p_queue,
    p_type,
    array[p_spec],
    p_options || jsonb_strip_nulls(
      jsonb_build_object(
        'priority', p_priority, 'run_at', p_run_at, 'delay_s', p_delay_s::text, 'dedupe', p_dedupe
      )
    ),
    case when p_idempotency_key is not null then array[p_idempotency_key] end
  ) as made
$$;

comment on function treadle.enqueue_task(
  text, text, jsonb, integer, timestamptz, double precision, text, boolean, jsonb
) is 'Enqueue one task in the caller''s transaction; further settings go into p_options.';

revoke all on function treadle.enqueue_task(
  text, text, jsonb, integer, timestamptz, double precision, text, boolean, jsonb
) from public;
grant execute on function treadle.enqueue_task(
  text, text, jsonb, integer, timestamptz, double precision, text, boolean, jsonb
) to treadle_producer, treadle_worker;
