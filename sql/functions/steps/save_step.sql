-- save_step: save the result of a step, so that later attempts do not repeat it.
--
-- select output from treadle.save_step(id, token, 'outline', '{"parts": 3}');
--
-- The first result under a name stays: later calls get it back with saved = false. Paid calls of
-- the step are counted in the same transaction, and the lease is renewed. A verdict other than ok
-- means that a limit is reached; see reserve_spend.
--
-- Concurrency: see lock_claim; steps of one task are saved one after another.
-- Lock order:  tasks, spend, budgets by id, reservations, steps.
-- Raises:      TR001 invalid argument, TR002 too large, TR101 claim lost, TR104 step conflict.

create or replace function treadle.save_step(
  p_id          uuid,
  p_token       uuid,
  p_name        text,
  p_output      jsonb,
  p_kind        text default 'step',
  p_input_hash  text default null,
  p_input       text default null,
  p_started_at  timestamptz default null,
  p_calls       jsonb default '[]',
  out output jsonb,
  out saved boolean,
  out verdict text
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_task treadle.tasks;
  v_step treadle.steps;
  v_cost numeric;
begin
  -- Answers and subtasks are saved by other functions.
  if p_kind is null or p_kind not in ('step', 'sleep') then
    perform treadle.raise_error(
      format('kind cannot be %s', coalesce(quote_literal(left(p_kind, 60)), 'null')),
      jsonb_build_object('argument', 'kind'),
      'Use step or sleep.'
    );
  end if;
  v_task := treadle.lock_claim(p_id, p_token);
  v_cost := treadle.add_spend(v_task, p_name, coalesce(p_calls, '[]'));
  saved := treadle.store_step(
    p_id, p_name, p_kind, p_output, v_task.attempt, v_task.agent_id, p_token, p_input_hash, p_input,
    p_started_at, v_cost
  );

  select steps.*
  into v_step
  from treadle.steps
  where steps.task_id = p_id and steps.name = p_name;
  if v_step.input_hash <> p_input_hash or v_step.kind <> p_kind then
    perform treadle.raise_error(
      format(
        'step %L was saved as a %s with input %s, but is now a %s with input %s',
        left(p_name, 60),
        v_step.kind,
        coalesce(treadle.excerpt(to_jsonb(v_step.input)), left(v_step.input_hash, 60), 'unknown'),
        p_kind,
        coalesce(treadle.excerpt(to_jsonb(p_input)), left(p_input_hash, 60), 'unknown')
      ),
      jsonb_build_object(
        'task_id', p_id, 'step', p_name, 'kind', v_step.kind,
        'stored_input', treadle.excerpt(to_jsonb(v_step.input)),
        'stored_hash', v_step.input_hash,
        'given_input', treadle.excerpt(to_jsonb(p_input)), 'given_hash', p_input_hash
      ),
      'Use a different step name for each input, or fork the task from this step.',
      'TR104'
    );
  end if;
  output := v_step.output;
  verdict := 'ok';
  if v_cost > 0 then
    select found.verdict into verdict
    from treadle.tasks
    cross join lateral treadle.budget_verdict(tasks, 0) as found
    where tasks.id = p_id;
  end if;
end;
$$;

comment on function treadle.save_step(
  uuid, uuid, text, jsonb, text, text, text, timestamptz, jsonb
) is 'Save the result of a step of a claimed task; the first result under a name stays.';

grant execute on function treadle.save_step(
  uuid, uuid, text, jsonb, text, text, text, timestamptz, jsonb
) to treadle_worker;
