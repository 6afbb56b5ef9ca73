-- keep_step: store what a task has done under a name, once; says whether it was stored.
--
-- No fence: an answer comes while nobody holds the task.
--
-- Concurrency: the caller holds the task, so the next number is free.
-- Lock order:  steps, after tasks.
-- Raises:      TR001 invalid argument, TR002 too large.

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

comment on function treadle.keep_step(
  uuid, text, text, jsonb, smallint, text, uuid, text, text, timestamptz, numeric
) is 'Internal: appends a step to a locked task unless it has one of this name.';

revoke all on function treadle.keep_step(
  uuid, text, text, jsonb, smallint, text, uuid, text, text, timestamptz, numeric
) from public;
