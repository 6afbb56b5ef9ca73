-- enqueue_harness_task: store a task for an agent; the nudge is sent later and may be lost.
--
-- select * from treadle.enqueue_harness_task('http://localhost:9000', '{"issue": 7}');
--
-- If the caller passes an id, the call may be repeated: the same task for the same agent is stored
-- once. p_allow_secrets: store the payload even if it seems to contain a credential.
--
-- Concurrency: of two calls with the same id, the second waits for the first and returns its task.
-- Lock order:  lanes, tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR105 queue full, TR111 secret refused.

-- ensure_harness_queue: create the queue and the type of the harness if they are missing.
--
-- From then on the operator owns their settings. Tasks with an expired claim are pending again at
-- once. The breaker is off, since a failing agent would block the others.
--
-- Concurrency: writes nothing if both exist.
-- Lock order:  queues, task_types.
create or replace function treadle.ensure_harness_queue()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if treadle.are_names('harness', 'harness') then
    return;
  end if;
  if not exists (select from treadle.queues where queues.name = 'harness') then
    perform treadle.define_queue(
      'harness',
      '{"max_attempts": 4, "retry": {"strategy": "immediate", "poison": false}}'
    );
  end if;
  if not exists (select from treadle.task_types where task_types.name = 'harness') then
    perform treadle.define_type(
      'harness',
      '{"description": "A task for an agent of the harness", "breaker": {"threshold": 0}}'
    );
  end if;
end;
$$;

-- normalize_agent_url: normalize the URL of an agent: without a trailing slash.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.normalize_agent_url(p_url text)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_url is null or octet_length(p_url) > 200
    or p_url !~ '^https?://[A-Za-z0-9._-]+(:[0-9]{1,5})?(/[^\s?#@\\]*)?$'
    and p_url !~ '^https?://\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?(/[^\s?#@\\]*)?$'
  then
    perform treadle.raise_error(
      format('%s is not a valid agent URL', coalesce(quote_literal(left(p_url, 60)), 'null')),
      jsonb_build_object('argument', 'agent_url'),
      'Use http or https, a host and optionally a port and path: http://localhost:9000'
    );
  end if;
  return rtrim(p_url, '/');
end;
$$;

create or replace function treadle.enqueue_harness_task(
  p_agent_url  text,
  p_payload    jsonb,
  p_id         uuid default null,
  p_allow_secrets    boolean default false
)
returns table (id uuid, created boolean)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_url  text := treadle.normalize_agent_url(p_agent_url);
  v_id   uuid := coalesce(p_id, treadle.uuidv7());
  v_task treadle.tasks;
  v_kind record;
begin
  if jsonb_typeof(p_payload) is distinct from 'object' then
    perform treadle.raise_error(
      'the payload must be a JSON object', jsonb_build_object('argument', 'payload')
    );
  end if;
  perform treadle.reject_secret(p_payload, 'payload') where p_allow_secrets is not true;
  perform treadle.ensure_harness_queue();
  perform treadle.ensure_durable();

  v_kind := treadle.prepare_task(
    jsonb_build_object(
      'queue', 'harness', 'type', 'harness', 'assigned_agent', v_url, 'consumer', 'harness'
    ),
    'task',
    treadle.clock()
  );
  begin
    perform treadle.store_tasks(
      array[v_kind.task], array[v_kind.rest], array[p_payload], p_ids => array[v_id]
    );
    perform treadle.notify_harness();
    return query select v_id, true;
    return;
  exception
    -- The task is there: this call is a repeat, or its id is taken.
    when unique_violation then null;
  end;

  select tasks.* into v_task from treadle.tasks where tasks.id = v_id;
  if (v_task.queue, v_task.assigned_agent, v_task.spec)
    is distinct from ('harness', v_url, p_payload) then
    perform treadle.raise_error(
      format('task id %s is already used for another task', v_id),
      jsonb_build_object('argument', 'task_id', 'task_id', v_id),
      'Use a new id for a new task, or omit it.'
    );
  end if;
  return query select v_id, false;
end;
$$;

comment on function treadle.enqueue_harness_task(text, jsonb, uuid, boolean) is
'Store a task for a harness agent; with an id the call may be repeated.';

grant execute on function treadle.enqueue_harness_task(text, jsonb, uuid, boolean) to
treadle_producer;
