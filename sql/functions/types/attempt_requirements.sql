-- attempt_requirements: models, validators and reports that an attempt must respect.

-- attempt_models: the models that are in force for an attempt of a task.
--
-- Those of the task, else those of its type. From the third attempt on the fallback models come
-- instead of the models, where there are any.
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
'Internal: the models of an attempt, from those of its task and of its type.';

-- demanding_types: the types that say something about models, validators or reports.
--
-- Most have none: then claims and completions look no further. In plpgsql, which keeps its plan.
create or replace function treadle.demanding_types()
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
        task_types.validation, task_types.report, task_types.models, task_types.fallback_models
      ) > 0
  );
end;
$$;

-- has_terms: whether a task, or its type, says something about models, validators or reports.
create or replace function treadle.has_terms(p_task treadle.tasks, p_types text[])
returns boolean
language sql
stable
return (
  p_task.type = any (p_types)
  or pg_catalog.num_nonnulls(
    p_task.validation, p_task.report, p_task.models, p_task.fallback_models
  ) > 0
);

-- terms_of: what is asked of the attempt that a task is in: models, validators, a report.
--
-- Its own, else those of its type, as they are now: what is changed in the code goes for tasks
-- that wait already.
create or replace function treadle.terms_of(
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
      p_task.attempt, p_task.models, p_task.fallback_models,
      task_types.models, task_types.fallback_models
    ),
    coalesce(p_task.validation, task_types.validation),
    coalesce(p_task.report, task_types.report) = 'required'
  from treadle.task_types
  where task_types.name = p_task.type
$$;

-- attempt_model: the model that an attempt used: what it has paid for last, else what it was told.
--
-- Concurrency: the caller holds the task.
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
      (treadle.terms_of(p_task)).models[1]
    )
$$;

grant execute on function treadle.attempt_models(smallint, text[], text[], text[], text[]) to
treadle_observer, treadle_operator;
