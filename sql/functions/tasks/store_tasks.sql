-- store_tasks: check payloads and insert tasks.

-- check_specs: reject payloads that are not objects, too large or too deep.
--
-- The size is that of the stored jsonb. 64 levels take more than 128 bytes, so small payloads are
-- not traversed. A number such as 1e100000 is short when stored and long when sent to an agent;
-- enough of them could never be sent, and the task would block its lane.
--
-- Raises:      TR001 invalid argument, TR002 too large.
create or replace function treadle.check_specs(p_specs jsonb[], p_max_bytes integer)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_long constant jsonpath :=
    '$.** ? (@ > 1e300 || @ < -1e300 || (@ > 0 && @ < 1e-300) || (@ < 0 && @ > -1e-300))';
  v_at   bigint;
  v_spec jsonb;
begin
  select given.at, given.spec
  into v_at, v_spec
  from unnest(p_specs) with ordinality as given (spec, at)
  where
    jsonb_typeof(given.spec) is distinct from 'object'
    or pg_column_size(given.spec) > p_max_bytes
    or (pg_column_size(given.spec) > 128 and jsonb_path_exists(given.spec, '$.**{65}'))
    or case
      when pg_column_size(given.spec) <= 8192 then octet_length(given.spec::text) > p_max_bytes
      else jsonb_path_exists(given.spec, c_long)
    end
  order by given.at
  limit 1;

  if not found then
    return;
  end if;

  if jsonb_typeof(v_spec) is distinct from 'object' then
    perform treadle.raise_error(
      format('the spec must be a JSON object, not %s', coalesce(jsonb_typeof(v_spec), 'missing')),
      jsonb_build_object('argument', 'spec', 'index', v_at - 1),
      'Pass the arguments of the handler by name: {"prompt": "..."}.'
    );
  elsif pg_column_size(v_spec) > p_max_bytes then
    perform treadle.raise_error(
      format('the spec has %s bytes, %s are allowed', pg_column_size(v_spec), p_max_bytes),
      jsonb_build_object(
        'argument', 'spec', 'index', v_at - 1,
        'bytes', pg_column_size(v_spec), 'max_bytes', p_max_bytes
      ),
      'Store the data elsewhere and pass a reference, or raise max_spec_bytes of the queue.',
      'TR002'
    );
  elsif not jsonb_path_exists(v_spec, '$.**{65}') then
    perform treadle.raise_error(
      'the spec contains numbers that are too long to send',
      jsonb_build_object('argument', 'spec', 'index', v_at - 1),
      'Pass them as text, or keep them within 1e300.'
    );
  else
    perform treadle.raise_error(
      'the spec is nested more than 64 levels deep',
      jsonb_build_object('argument', 'spec', 'index', v_at - 1),
      'Flatten it, or pass the deep part as text.'
    );
  end if;
end;
$$;

-- store_options: insert the task_options rows of new tasks that have options.
--
-- Uses the row type, so that no column is named here. Tasks without an id are left out.
--
-- Lock order:  task_options, new rows only.
create or replace function treadle.store_options(
  p_rest     treadle.task_options[],
  p_ids      uuid[],
  p_kind_of  integer[] default null
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into treadle.task_options
  select filled.*
  from unnest(p_ids, p_kind_of) as given (id, kind)
  cross join lateral jsonb_populate_record(
    p_rest[coalesce(given.kind, 1)], jsonb_build_object('task_id', given.id)
  ) as filled
  where given.id is not null and not p_rest[coalesce(given.kind, 1)] is null;
end;
$$;

-- store_tasks: insert new tasks; if a key is in use, return the task that has it.
--
-- A kind is the result of prepare_task: its task and its rest. p_kind_of gives the kind of each
-- task; null means that all are of the first kind. p_rest is null if no kind has options. p_nodes
-- has the additional columns of tasks of a DAG: one that waits for others is pending.
--
-- Concurrency: of two sessions with the same key, the second waits for the first and gets its task.
-- Lock order:  tasks.
-- Raises:      TR001 invalid argument, TR002 too large.
create or replace function treadle.store_tasks(
  p_kinds    treadle.tasks[],
  p_rest     treadle.task_options[],
  p_specs    jsonb[],
  p_keys     text[] default null,
  p_ids      uuid[] default null,
  p_kind_of  integer[] default null,
  p_nodes    treadle.dag_node[] default null
)
returns table (id uuid, created boolean)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_ids  uuid[] := coalesce(p_ids, array(select treadle.uuidv7() from unnest(p_specs)));
  v_held uuid[];
  v_todo bigint[];
begin
  -- Tasks of a DAG have been checked by prepare_nodes, for each queue.
  perform treadle.check_specs(p_specs, queues.max_spec_bytes)
  from treadle.queues
  where queues.name = (p_kinds[1]).queue and p_kind_of is null;

  loop
    insert into treadle.tasks (
      id, rank, created_at, run_at, delayed_at, deadline_at, rerank_at, timeout_s, parent_id,
      dag_id, project_id, lane_id, blocked_count, priority, max_attempts, critical_path, capped,
      has_options, max_cost_usd, status, queue, type, slot, concurrency_key, idempotency_key,
      assigned_agent, tags, name, title, created_by, inputs, spec
    )
    select
      given.id, kind.rank - coalesce(given.path, 0) * 1000000::bigint, kind.created_at, kind.run_at,
      kind.delayed_at, kind.deadline_at, kind.rerank_at, kind.timeout_s, kind.parent_id,
      kind.dag_id, kind.project_id, kind.lane_id, coalesce(given.unmet, 0), kind.priority,
      kind.max_attempts, coalesce(given.path, kind.critical_path), kind.capped, kind.has_options,
      kind.max_cost_usd,
      case when given.unmet > 0 and kind.status <> 'created' then 'pending' else kind.status end,
      kind.queue, kind.type, case when coalesce(given.unmet, 0) = 0 then kind.slot end,
      kind.concurrency_key, given.key, kind.assigned_agent, kind.tags, given.name,
      coalesce(given.title, kind.title), kind.created_by, coalesce(given.inputs, kind.inputs),
      given.spec
    from unnest(v_ids, p_specs, p_keys, p_kind_of, p_nodes) with ordinality
      as given (id, spec, key, kind, name, title, inputs, unmet, path, at)
    inner join unnest(p_kinds) with ordinality as kind
      -- The condition is always true. It makes the planner hash the kinds and read the tasks in
      -- order.
      on coalesce(given.kind, 1) = kind.ordinality and kind.ordinality <= cardinality(p_kinds)
    where v_todo is null or given.at = any (v_todo)
    on conflict (idempotency_key, project_id)
    where idempotency_key is not null and status not in ('dead_lettered', 'cancelled')
    do nothing;

    exit when p_keys is null;

    -- One index lookup per key: a join could be planned as a scan of all keys.
    v_held := array(
      select
        (
          select tasks.id
          from treadle.tasks
          where
            tasks.idempotency_key = given.key
            and tasks.project_id is not distinct from (p_kinds[coalesce(given.kind, 1)]).project_id
            and tasks.status not in ('dead_lettered', 'cancelled')
          limit 1
        )
      from unnest(p_keys, p_kind_of) with ordinality as given (key, kind, at)
      order by given.at
    );

    -- The task with this key may have been cancelled since, which frees the key: try again.
    v_todo := array(
      select given.at
      from unnest(p_keys, v_held) with ordinality as given (key, held, at)
      where given.key is not null and given.held is null
    );
    exit when cardinality(v_todo) = 0;
  end loop;

  if p_rest is not null then
    perform treadle.store_options(
      p_rest,
      case
        when p_keys is null then v_ids
        else array(
          select case when given.held <> given.id then null else given.id end
          from unnest(v_ids, v_held) with ordinality as given (id, held, at)
          order by given.at
        )
      end,
      p_kind_of
    );
  end if;
  if p_keys is null then
    return query select made.id, true from unnest(v_ids) as made (id);
    return;
  end if;
  return query
  select coalesce(given.held, given.id), coalesce(given.held = given.id, true)
  from unnest(v_ids, v_held) with ordinality as given (id, held, at)
  order by given.at;
end;
$$;
