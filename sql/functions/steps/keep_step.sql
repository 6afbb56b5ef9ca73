-- keep_step: store what a task has done under a name, once; says whether it was stored.
--
-- No fence: an answer comes while nobody holds the task.
--
-- Concurrency: the caller holds the task, so the next number is free.
-- Lock order:  steps, after tasks.
-- Raises:      TR001 invalid argument, TR002 too large.

-- check_step: refuse a step that could not be stored, or not be handed over again.
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
    perform treadle.refuse(
      format('a step needs a name of 1 to 200 bytes, not %s', coalesce(octet_length(p_name), 0)),
      jsonb_build_object('argument', 'name'),
      'Name it for what it does: "outline", "draft 2".'
    );
  end if;
  if octet_length(p_input_hash) > 200 or not treadle.is_moment(p_started_at) then
    perform treadle.refuse(
      format(
        'step %L: input_hash may have 200 bytes, started_at must be a moment from 1970 to 9999',
        left(p_name, 60)
      ),
      jsonb_build_object('argument', 'input_hash', 'step', p_name),
      'Pass a hash of the input, not the input.'
    );
  end if;

  v_found := treadle.json_problem(p_output, c_bytes);
  if v_found.problem is not null then
    perform treadle.refuse(
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

-- check_room: refuse one more step of a task that remembers too much already.
--
-- A claim carries all steps of a task, and one json value must hold them. What came from people
-- and events finds room after the handler's own steps found none any more.
--
-- Concurrency: the caller holds the task.
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
  -- Nothing is compressed to less than a 255th, so most need not be unpacked to be measured.
  if v_bytes * 255 > v_max then
    select coalesce(pg_column_size(p_output #> '{}'), 0)
      + coalesce(sum(pg_column_size(steps.output #> '{}')), 0)
    into v_bytes
    from treadle.steps
    where steps.task_id = p_task;
  end if;

  if v_count >= c_steps or v_bytes > v_max then
    perform treadle.refuse(
      case
        when v_count >= c_steps then format('task %s has %s steps, no more fit', p_task, v_count)
        else format(
          'the steps of task %s would have %s bytes, %s are allowed', p_task, v_bytes, v_max
        )
      end,
      jsonb_build_object(
        'task_id', p_task, 'steps', v_count, 'bytes', v_bytes, 'max_bytes', v_max
      ),
      'Store large outputs elsewhere and return references; give some of the work to subtasks.',
      'TR002'
    );
  end if;
end;
$$;

create or replace function treadle.keep_step(
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
