-- enqueue_tasks: enqueue any tasks in one call; each is a json object of options and its spec.
--
-- select * from treadle.enqueue_tasks('[
--   {"type": "code", "spec": {"prompt": "..."}, "priority": 10},
--   {"type": "test", "spec": {}, "delay_s": 60, "idempotency_key": "nightly"}
-- ]');
--
-- Tasks that differ only in spec and key are prepared and stored together.
--
-- Concurrency: part of the caller's transaction: the tasks are there exactly if it commits.
-- Lock order:  lanes, tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR202 unknown queue, TR203 unknown type.

create or replace function treadle.enqueue_tasks(p_tasks jsonb)
returns table (id uuid, created boolean)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_kind    record;
  v_places  bigint[] := '{}';
  v_ids     uuid[] := '{}';
  v_created boolean[] := '{}';
begin
  if jsonb_typeof(p_tasks) is distinct from 'array' or jsonb_path_exists(
    p_tasks, '$[*] ? (@.type() != "object")'
  ) then
    perform treadle.refuse(
      'the tasks must be a json array of objects',
      jsonb_build_object('argument', 'tasks'),
      'For example [{"type": "code", "spec": {"prompt": "..."}}].'
    );
  end if;

  for v_kind in
    select
      given.task - array['spec', 'idempotency_key'] as options,
      array_agg(coalesce(given.task -> 'spec', '{}') order by given.at) as specs,
      array_agg(given.task ->> 'idempotency_key' order by given.at) as keys,
      array_agg(given.at order by given.at) as places
    from jsonb_array_elements(p_tasks) with ordinality as given (task, at)
    group by given.task - array['spec', 'idempotency_key']
    -- By queue: two that fill the same queues with a depth limit do not block each other.
    order by min(given.task ->> 'queue'), min(given.at)
  loop
    select
      v_places || v_kind.places,
      v_ids || array_agg(made.id order by made.at),
      v_created || array_agg(made.created order by made.at)
    into v_places, v_ids, v_created
    from treadle.enqueue_batch(
      coalesce(v_kind.options ->> 'queue', 'default'),
      v_kind.options ->> 'type',
      v_kind.specs,
      v_kind.options,
      case when array_remove(v_kind.keys, null) <> '{}' then v_kind.keys end
    ) with ordinality as made (id, created, at);
  end loop;

  return query
  select made.id, made.created
  from unnest(v_places, v_ids, v_created) as made (place, id, created)
  order by made.place;
end;
$$;

comment on function treadle.enqueue_tasks(jsonb) is
'Enqueue any tasks given as a json array; one id for each, in order.';

revoke all on function treadle.enqueue_tasks(jsonb) from public;
grant execute on function treadle.enqueue_tasks(jsonb) to treadle_producer, treadle_worker;
