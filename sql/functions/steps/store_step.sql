-- store_step: store a step of a task once under its name; returns whether it was stored.
--
-- No token is checked: an answer may arrive while no agent has the task.
--
-- Concurrency: the caller has locked the task, so the next number is free.
-- Lock order:  steps, after tasks.
-- Raises:      TR001 invalid argument, TR002 too large.

-- check_step: check that a step can be stored and sent again.
--
-- Raises:      TR001 invalid argument, TR002 too large.
create or replace function treadle.check_step(
  p_name        text,
  p_output      jsonb default null,
  p_input_hash  text default null,
  p_started_at  timestamptz default null
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_bytes constant bigint := 16777216;
  v_found record;
begin
  if p_name is null or octet_length(p_name) not between 1 and 200 then
    perform treadle.raise_error(
      format('a step needs a name of 1 to 200 bytes, not %s', coalesce(octet_length(p_name), 0)),
      jsonb_build_object('argument', 'name'),
      'Use a name that says what the step does: "outline", "draft 2".'
    );
  end if;
  if octet_length(p_input_hash) > 200 or not treadle.is_valid_time(p_started_at) then
    perform treadle.raise_error(
      format(
        'step %L: input_hash must be at most 200 bytes, started_at a time from 1970 to 9999',
        left(p_name, 60)
      ),
      jsonb_build_object('argument', 'input_hash', 'step', p_name),
      'Pass a hash of the input, not the input.'
    );
  end if;

  v_found := treadle.json_problem(p_output, c_bytes);
  if v_found.problem is not null then
    perform treadle.raise_error(
      format('the output of step %L %s', left(p_name, 60), v_found.problem),
      jsonb_build_object(
        'argument', 'output', 'step', p_name, 'bytes', v_found.bytes, 'max_bytes', c_bytes
      ),
      'Store the data elsewhere, as an artifact, and return a reference.',
      case when v_found.bytes > c_bytes then 'TR002' else 'TR001' end
    );
  end if;
end;
$$;

-- check_room: reject another step of a task whose steps are too many or too large.
--
-- A claim carries all steps of a task, and one JSON value must hold them. Answers and events have a
-- higher limit than the handler's own steps.
--
-- Concurrency: the caller has locked the task.
-- Raises:      TR002 too large.
create or replace function treadle.check_room(p_task uuid, p_kind text, p_output jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  c_steps constant integer := 10000;
  v_max   bigint := case when p_kind in ('step', 'sleep') then 33554432 else 41943040 end;
  v_count bigint;
  v_bytes bigint;
begin
  select count(*), coalesce(sum(pg_column_size(steps.output)), 0)
  into v_count, v_bytes
  from treadle.steps
  where steps.task_id = p_task;

  v_bytes := v_bytes + coalesce(pg_column_size(p_output), 0);
  -- Compression never exceeds 255 to 1, so most steps can be measured without decompressing them.
  if v_bytes * 255 > v_max then
    select coalesce(pg_column_size(p_output #> '{}'), 0)
      + coalesce(sum(pg_column_size(steps.output #> '{}')), 0)
    into v_bytes
    from treadle.steps
    where steps.task_id = p_task;
  end if;

  if v_count >= c_steps or v_bytes > v_max then
    perform treadle.raise_error(
      case
        when v_count >= c_steps then format('task %s has %s steps, the limit', p_task, v_count)
        else format(
          'the steps of task %s would have %s bytes, %s are allowed', p_task, v_bytes, v_max
        )
      end,
      jsonb_build_object(
        'task_id', p_task, 'steps', v_count, 'bytes', v_bytes, 'max_bytes', v_max
      ),
      'Store large outputs elsewhere and return references, or move some work to subtasks.',
      'TR002'
    );
  end if;
end;
$$;

create or replace function treadle.store_step(
  p_task        uuid,
  p_name        text,
  p_kind        text,
  p_output      jsonb,
  p_attempt     smallint,
  p_agent       text,
  p_token       uuid,
  p_input_hash  text default null,
  p_input       text default null,
  p_started_at  timestamptz default null,
  p_cost_usd    numeric default 0
)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  perform treadle.check_step(p_name, p_output, p_input_hash, p_started_at);
  if exists (select from treadle.steps where steps.task_id = p_task and steps.name = p_name) then
    return false;
  end if;
  perform treadle.check_room(p_task, p_kind, p_output);

  insert into treadle.steps (
    task_id, name, seq, kind, input_hash, input, output, cost_usd, attempt, agent_id, claim_token,
    started_at, saved_at
  )
  values (
    p_task,
    p_name,
    1 + coalesce(
      (
        select steps.seq from treadle.steps
        where steps.task_id = p_task
        order by steps.seq desc
        limit 1
      ), 0
    ),
    p_kind, p_input_hash, left(p_input, 500), p_output, p_cost_usd, p_attempt, p_agent, p_token,
    p_started_at, treadle.clock()
  )
  on conflict (task_id, name) do nothing;

  update treadle.tasks set durable = true where tasks.id = p_task and not tasks.durable;
  return true;
end;
$$;
