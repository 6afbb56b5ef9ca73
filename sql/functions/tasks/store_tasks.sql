-- store_tasks: check payloads and insert tasks.

-- check_specs: refuse payloads that are not an object, too large or too deep.
--
-- Size is that of the stored json. 64 levels need over 128 bytes, so small ones are not walked.
-- A number like 1e100000 is short when stored and long when sent to an agent: enough of them could
-- never be sent, and the task would block its lane.
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
    perform treadle.refuse(
      format('the spec must be a json object, not %s', coalesce(jsonb_typeof(v_spec), 'missing')),
      jsonb_build_object('argument', 'spec', 'index', v_at - 1),
      'Pass the arguments of the handler by name: {"prompt": "..."}.'
    );
  elsif pg_column_size(v_spec) > p_max_bytes then
    perform treadle.refuse(
      format('the spec has %s bytes, %s are allowed', pg_column_size(v_spec), p_max_bytes),
      jsonb_build_object(
        'argument', 'spec', 'index', v_at - 1,
        'bytes', pg_column_size(v_spec), 'max_bytes', p_max_bytes
      ),
      'Store the data elsewhere and pass a reference, or raise max_spec_bytes of the queue.',
      'TR002'
    );
  elsif not jsonb_path_exists(v_spec, '$.**{65}') then
    perform treadle.refuse(
      'the spec has numbers that are too long to be sent',
      jsonb_build_object('argument', 'spec', 'index', v_at - 1),
      'Pass them as text, or keep them within 1e300.'
    );
  else
    perform treadle.refuse(
      'the spec is nested more than 64 levels deep',
      jsonb_build_object('argument', 'spec', 'index', v_at - 1),
      'Flatten it, or pass the deep part as text.'
    );
  end if;
end;
$$;

-- insert_tasks: store many tasks of one kind; a key that is taken gives the task that has it.
--
-- Concurrency: two sessions with the same key: the second waits for the first, then gets its task.
-- Lock order:  tasks.
-- Raises:      TR001 invalid argument, TR002 too large.
create or replace function treadle.insert_tasks(
  p_kind   treadle.tasks,
  p_specs  jsonb[],
  p_keys   text[] default null
)
returns table (id uuid, created boolean)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_ids  uuid[] := array(select treadle.uuidv7() from unnest(p_specs));
  v_held uuid[];
  v_todo bigint[];
begin
  perform treadle.check_specs(
    p_specs,
    (select queues.max_spec_bytes from treadle.queues where queues.name = p_kind.queue)
  );

  loop
    insert into treadle.tasks (
      id, rank, created_at, run_at, deadline_at, timeout_s, parent_id, dag_id, project_id, lane_id,
      priority, max_attempts, max_cost_usd, ageing_rate, status, queue, type, consumer,
      assigned_agent, capabilities, tags, title, created_by, source, source_job, external_ref,
      notes, retry, validation, rerank_at, max_tokens, capped, on_budget, slot, concurrency_key,
      gates, report, models, fallback_models, delayed_at, spec, idempotency_key
    )
    select
      given.id, p_kind.rank, p_kind.created_at, p_kind.run_at, p_kind.deadline_at, p_kind.timeout_s,
      p_kind.parent_id, p_kind.dag_id, p_kind.project_id, p_kind.lane_id, p_kind.priority,
      p_kind.max_attempts, p_kind.max_cost_usd, p_kind.ageing_rate, p_kind.status, p_kind.queue,
      p_kind.type, p_kind.consumer, p_kind.assigned_agent, p_kind.capabilities, p_kind.tags,
      p_kind.title, coalesce(p_kind.created_by, session_user), p_kind.source, p_kind.source_job,
      p_kind.external_ref, p_kind.notes, p_kind.retry, p_kind.validation, p_kind.rerank_at,
      p_kind.max_tokens, p_kind.capped, p_kind.on_budget, p_kind.slot, p_kind.concurrency_key,
      p_kind.gates, p_kind.report, p_kind.models, p_kind.fallback_models, p_kind.delayed_at,
      given.spec, given.key
    from unnest(v_ids, p_specs, p_keys) with ordinality as given (id, spec, key, at)
    where v_todo is null or given.at = any (v_todo)
    on conflict (idempotency_key, project_id)
    where idempotency_key is not null and status not in ('dead_lettered', 'cancelled')
    do nothing;

    if p_keys is null then
      return query select made.id, true from unnest(v_ids) as made (id);
      return;
    end if;

    -- One probe of the key's index for each key: a join could be planned as a scan of them all.
    v_held := array(
      select
        (
          select tasks.id
          from treadle.tasks
          where
            tasks.idempotency_key = given.key
            and tasks.project_id is not distinct from p_kind.project_id
            and tasks.status not in ('dead_lettered', 'cancelled')
          limit 1
        )
      from unnest(p_keys) with ordinality as given (key, at)
      order by given.at
    );

    -- The task in the way may have been cancelled since: its key is free, so try again.
    v_todo := array(
      select given.at
      from unnest(p_keys, v_held) with ordinality as given (key, held, at)
      where given.key is not null and given.held is null
    );
    exit when cardinality(v_todo) = 0;
  end loop;

  return query
  select coalesce(given.held, given.id), coalesce(given.held = given.id, true)
  from unnest(v_ids, v_held) with ordinality as given (id, held, at)
  order by given.at;
end;
$$;
