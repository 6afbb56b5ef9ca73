-- attempt_requirements: the models, validators and reports that apply to an attempt.

-- attempt_models: return the models that apply to an attempt of a task.
--
-- The models of the task take precedence over those of its type. From the third attempt on, the
-- fallback models replace them, if there are any.
create or replace function treadle.attempt_models(
  p_attempt        smallint,
  p_models         text[],
  p_fallback       text[],
  p_type_models    text[],
  p_type_fallback  text[]
)
returns text[]
language sql
immutable
parallel safe
return coalesce(
  case when p_attempt >= 3 then nullif(coalesce(p_fallback, p_type_fallback), '{}') end,
  p_models,
  p_type_models
);

comment on function treadle.attempt_models(smallint, text[], text[], text[], text[]) is
'The models of an attempt, from those of its task and of its type.';

-- types_with_requirements: return the types that set models, validators or reports.
--
-- Most types have none, and then claims and completions check nothing else. Written in plpgsql,
-- which caches its plan.
create or replace function treadle.types_with_requirements()
returns text[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select task_types.name
    from treadle.task_types
    where
      num_nonnulls(
        task_types.validation, task_types.report, task_types.output_type, task_types.models,
        task_types.fallback_models
      ) > 0
  );
end;
$$;

-- has_requirements: return whether a task or its type may set models, validators or reports.
create or replace function treadle.has_requirements(p_task treadle.tasks, p_types text[])
returns boolean
language sql
stable
return p_task.has_options or p_task.type = any (p_types);

-- attempt_requirements: return the models, validators and report policy of the current attempt of a
-- task.
--
-- The validator output_type, which checks the kind of the output, comes first.
-- The task's own settings take precedence over those of its type as they are now: changes in code
-- also apply to tasks that are already waiting.
create or replace function treadle.attempt_requirements(
  p_task treadle.tasks,
  out models      text[],
  out validation  jsonb,
  out report      boolean
)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    treadle.attempt_models(
      p_task.attempt, task_options.models, task_options.fallback_models,
      task_types.models, task_types.fallback_models
    ),
    case
      when coalesce(task_options.output_type, task_types.output_type) is null
        then coalesce(task_options.validation, task_types.validation)
      else jsonb_build_array(
        jsonb_build_object(
          'validator', 'output_type',
          'type', coalesce(task_options.output_type, task_types.output_type)
        )
      ) || coalesce(task_options.validation, task_types.validation, '[]')
    end,
    coalesce(task_options.report, task_types.report) = 'required'
  from treadle.task_types
  left join treadle.task_options on p_task.has_options and task_options.task_id = p_task.id
  where task_types.name = p_task.type
$$;

-- attempt_model: return the model that an attempt used: the last one paid for, else the first
-- allowed one.
--
-- Concurrency: the caller has locked the task.
create or replace function treadle.attempt_model(p_task treadle.tasks)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    coalesce(
      (
        select spend.model
        from treadle.spend
        where
          spend.task_id = p_task.id
          and spend.attempt = p_task.attempt
          and spend.at >= p_task.claimed_at
          and spend.model is not null
        order by spend.at desc
        limit 1
      ),
      (treadle.attempt_requirements(p_task)).models[1]
    )
$$;

grant execute on function treadle.attempt_models(smallint, text[], text[], text[], text[]) to
treadle_observer, treadle_operator;
