-- submit_push: add a prompt to the end of queue `push`.
--
-- select * from treadle.submit_push('{"prompt": "Say hello"}', 'cli', null, 50, 3);
--
-- The queue and its type are created on first use; p_max_depth and p_max_attempts set its limits,
-- and null leaves them unchanged. Unknown fields of the request are ignored.
--
-- Concurrency: submitters run one after another, so that positions are exact: each gets its
-- position once it holds the depth lock of the queue. The lane is created before that, because a
-- session creating the same lane may wait for the lock.
-- Lock order:  lanes, locks, tasks. A session that holds a task of the queue waits for the lock
-- only if it has just created that task.
-- Raises:      TR001 invalid argument, TR002 too large, TR105 queue full.

-- push_spec: check the request of a submitter and return the spec of the task.
--
-- Unknown fields and empty values, such as a timeout of 0, are left out. False is not empty.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.push_spec(p_request jsonb)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_spec jsonb;
  v_name text;
  v_must text;
begin
  select jsonb_object_agg(given.key, given.value)
  into v_spec
  from jsonb_each(case when jsonb_typeof(p_request) = 'object' then p_request end) as given
  where
    given.key in (
      'prompt', 'model', 'timeout_seconds', 'session_id', 'project', 'env', 'thinking'
    )
    and given.value not in ('null', '""', '{}')
    and (given.key, given.value) <> ('timeout_seconds', '0');

  select rules.name, rules.must
  into v_name, v_must
  from (
    values
    ('prompt', 'string', 'be a text that is not blank'),
    ('model', 'string', 'be a text'),
    ('session_id', 'string', 'be a text'),
    ('timeout_seconds', 'number', 'be a whole number of seconds, 1 to 31536000'),
    ('project', 'object', 'be a JSON object'),
    ('env', 'object', 'be a JSON object of texts'),
    ('thinking', 'boolean', 'be true or false')
  ) as rules (name, type, must)
  where
    jsonb_typeof(v_spec -> rules.name) <> rules.type
    or case rules.name
      when 'prompt' then coalesce(v_spec ->> 'prompt' !~ '[^[:space:]]', true)
      when 'timeout_seconds' then v_spec @? '$.timeout_seconds ? (@ < 1 || @ > 31536000)'
        or v_spec @? '$.timeout_seconds ? (@.floor() != @)'
      when 'env' then v_spec @? '$.env.* ? (@.type() != "string")'
    end
  limit 1;
  if found then
    perform treadle.raise_error(
      format('%s must %s', v_name, v_must), jsonb_build_object('argument', v_name)
    );
  end if;
  return v_spec;
end;
$$;

-- push_rank: return the rank of a task that joins the end of its lane at a given time.
create or replace function treadle.push_rank(p_task treadle.tasks, p_at timestamptz)
returns bigint
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    (p_task.priority - p_task.critical_path) * 1000000::bigint
    + treadle.ageing_offset(lanes.ageing - lanes.urgency, p_at)
  from treadle.lanes
  where lanes.id = p_task.lane_id
$$;

-- ensure_push_queue: create queue `push` and its type, or change the limits of the queue.
--
-- A waiting task gains a hundred points of priority in six seconds, which makes the queue first in,
-- first out. The type has no breaker: the dispatcher checks each agent. Poison pills are off: a
-- prompt uses all its attempts, whichever agents lose it.
--
-- Concurrency: reads only if nothing has to change.
-- Lock order:  task_types, queues; with the first max_depth the tasks, see define_queue.
-- Raises:      TR001 invalid argument.
create or replace function treadle.ensure_push_queue(
  p_max_depth     integer default null,
  p_max_attempts  integer default null
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue treadle.queues;
begin
  select queues.* into v_queue from treadle.queues where queues.name = 'push';
  if not exists (select from treadle.task_types where task_types.name = 'prompt') then
    perform treadle.define_type(
      'prompt',
      '{"description": "Send a prompt to a push agent", "breaker": {"threshold": 0}}'
    );
  end if;

  if v_queue.max_depth is null or not v_queue.retry ? 'poison' then
    perform treadle.define_queue(
      'push',
      jsonb_build_object(
        'ageing_rate', 1000,
        'max_depth', coalesce(p_max_depth, v_queue.max_depth, 50),
        'max_attempts', coalesce(p_max_attempts, v_queue.max_attempts, 3),
        'retry', '{"poison": false}' || coalesce(v_queue.retry, '{}')
      )
    );
  elsif v_queue.max_depth <> p_max_depth or v_queue.max_attempts <> p_max_attempts then
    perform treadle.define_queue(
      'push',
      jsonb_strip_nulls(
        jsonb_build_object('max_depth', p_max_depth, 'max_attempts', p_max_attempts)
      )
    );
  end if;
end;
$$;

create or replace function treadle.submit_push(
  p_request       jsonb,
  p_source        text,
  p_job           text default null,
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
  v_spec  jsonb := treadle.push_spec(p_request);
  v_kind  record;
  v_task  treadle.tasks;
  v_id    uuid;
  v_depth integer;
  v_limit integer;
begin
  perform treadle.ensure_durable();
  perform treadle.ensure_push_queue(p_max_depth, p_max_attempts);
  v_kind := treadle.prepare_task(
    jsonb_build_object('queue', 'push', 'type', 'prompt') || treadle.origin(p_source, p_job),
    'task',
    treadle.clock()
  );
  v_task := v_kind.task;

  insert into treadle.locks (name) values ('depth:push')
  on conflict (name) do update set touched = locks.touched + 1;
  v_task.created_at := treadle.clock();
  v_task.rank := treadle.push_rank(v_task, v_task.created_at);
  -- Under the lock this is exact; check_depth counts once more.
  v_depth := treadle.queue_depth('push');
  select queues.max_depth into v_limit from treadle.queues where queues.name = 'push';
  if v_depth >= v_limit then
    perform treadle.raise_error(
      format(
        'Queue is full. Please try again later. %s of at most %s tasks are waiting.',
        v_depth, v_limit
      ),
      jsonb_build_object(
        'queue', 'push', 'depth', v_depth, 'limit', v_limit, 'reason', 'queue_full',
        'max_size', v_limit
      ),
      'Try again later, or start the server with a larger TREADLE_QUEUE_MAX_SIZE.',
      'TR105'
    );
  end if;
  select made.id
  into v_id
  from treadle.store_tasks(array[v_task], array[v_kind.rest], array[v_spec]) as made;

  return query
  select
    entry.queue_id, entry.id, entry.position, entry.state,
    (select max(line.position) from treadle.push_queue as line where line.completed_at is null)
  from treadle.push_queue as entry
  where entry.id = v_id;
end;
$$;

comment on function treadle.submit_push(jsonb, text, text, integer, integer) is
'Queue a prompt for the push agents; returns its position and the depth of the queue.';

grant execute on function treadle.submit_push(jsonb, text, text, integer, integer) to
treadle_producer, treadle_worker;
