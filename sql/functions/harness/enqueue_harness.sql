-- enqueue_harness: store a task for an agent; the nudge comes after, and may get lost.
--
-- select * from treadle.enqueue_harness('http://localhost:9000', '{"issue": 7}');
--
-- With an id of the caller's, the call may be repeated: the same task for the same agent is stored
-- once. p_secrets: store it also when it looks as if a credential were in it.
--
-- Concurrency: two with the same id: the second waits for the first, then gets its task.
-- Lock order:  lanes, tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR105 queue full, TR111 secret refused.

-- make_harness: make the queue and the type of the harness where they are missing.
--
-- Their settings belong to the operator from then on. A claim that ran out is pending again at
-- once; who fails is one agent, and its breaker would hold up the others.
--
-- Concurrency: writes nothing when both are there.
-- Lock order:  queues, task_types.
create or replace function treadle.make_harness()
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

-- agent_url_of: the address of an agent as it is kept: without its last slash.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.agent_url_of(p_url text)
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
    perform treadle.refuse(
      format('%s is no address of an agent', coalesce(quote_literal(left(p_url, 60)), 'null')),
      jsonb_build_object('argument', 'agent_url'),
      'http or https, a host, perhaps a port and a path, up to 200 bytes: http://localhost:9000'
    );
  end if;
  return rtrim(p_url, '/');
end;
$$;

create or replace function treadle.enqueue_harness(
  p_agent_url  text,
  p_payload    jsonb,
  p_id         uuid default null,
  p_secrets    boolean default false
)
returns table (id uuid, created boolean)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_url  text := treadle.agent_url_of(p_agent_url);
  v_id   uuid := coalesce(p_id, treadle.uuidv7());
  v_task treadle.tasks;
begin
  if jsonb_typeof(p_payload) is distinct from 'object' then
    perform treadle.refuse(
      'the payload must be a json object', jsonb_build_object('argument', 'payload')
    );
  end if;
  perform treadle.refuse_secret(p_payload, 'payload') where p_secrets is not true;
  perform treadle.make_harness();
  perform treadle.keep_durable();

  insert into treadle.tasks (
    id, queue, type, assigned_agent, consumer, spec, created_at, created_by, max_attempts
  )
  values (
    v_id, 'harness', 'harness', v_url, 'harness', p_payload, treadle.clock(), session_user, null
  )
  on conflict (id) do nothing;
  if found then
    perform treadle.wake_harness();
    return query select v_id, true;
    return;
  end if;

  select tasks.* into v_task from treadle.tasks where tasks.id = v_id;
  if (v_task.queue, v_task.assigned_agent, v_task.spec)
    is distinct from ('harness', v_url, p_payload) then
    perform treadle.refuse(
      format('task %s exists, and is another one', v_id),
      jsonb_build_object('argument', 'task_id', 'task_id', v_id),
      'Take a new id for a new task, or leave it out.'
    );
  end if;
  return query select v_id, false;
end;
$$;

comment on function treadle.enqueue_harness(text, jsonb, uuid, boolean) is
'Store a task for an agent of the harness; with an id the call may be repeated.';

grant execute on function treadle.enqueue_harness(text, jsonb, uuid, boolean) to treadle_producer;
