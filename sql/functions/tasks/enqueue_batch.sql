-- enqueue_batch: enqueue many tasks of one kind; the fastest way in.
--
-- select * from treadle.enqueue_batch('default', 'code', array['{"n": 1}', '{"n": 2}']::jsonb[]);
--
-- With {"dedupe": true} in the options, a task without a key gets one made from its content.
--
-- Concurrency: part of the caller's transaction: the tasks are there exactly if it commits.
-- Lock order:  lanes, tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR202 unknown queue, TR203 unknown type.

create or replace function treadle.enqueue_batch(
  p_queue    text,
  p_type     text,
  p_specs    jsonb[],
  p_options  jsonb default '{}',
  p_keys     text[] default null
)
returns table (id uuid, created boolean)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_keys text[] := p_keys;
  v_long text;
begin
  perform treadle.keep_durable();

  if (p_options -> 'dedupe') = 'true' then
    v_keys := array(
      select coalesce(given.key, treadle.content_key(p_type, given.spec))
      from unnest(p_specs, p_keys) with ordinality as given (spec, key, at)
      order by given.at
    );
  end if;

  if v_keys is not null then
    perform treadle.check_pairs(
      array_fill(null::uuid, array[cardinality(p_specs)]), null, 'keys', cardinality(v_keys)
    );
    select given.key
    into v_long
    from unnest(v_keys) as given (key)
    where octet_length(given.key) not between 1 and 200
    limit 1;
    if found then
      perform treadle.refuse(
        format('idempotency_key must have 1 to 200 bytes, not %s', octet_length(v_long)),
        jsonb_build_object('argument', 'idempotency_key'),
        'Hash a long key, or leave it out.'
      );
    end if;
  end if;

  return query
  select made.id, made.created
  from treadle.insert_tasks(
    treadle.prepare_task(
      p_options || jsonb_build_object('queue', p_queue, 'type', p_type), treadle.clock()
    ),
    p_specs,
    v_keys
  ) as made;
end;
$$;

comment on function treadle.enqueue_batch(text, text, jsonb[], jsonb, text[]) is
'Enqueue many tasks of one queue, type and set of options; one id for each spec, in order.';

revoke all on function treadle.enqueue_batch(text, text, jsonb[], jsonb, text[]) from public;
grant execute on function treadle.enqueue_batch(text, text, jsonb[], jsonb, text[]) to
treadle_producer, treadle_worker;
