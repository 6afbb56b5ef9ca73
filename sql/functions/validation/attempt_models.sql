-- attempt_models: the models that are in force for an attempt of a task.
--
-- Those of the task, else those of its type. From the third attempt on the fallback models come
-- instead of the models, where there are any.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

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

revoke all on function treadle.attempt_models(smallint, text[], text[], text[], text[]) from public;
grant execute on function treadle.attempt_models(smallint, text[], text[], text[], text[]) to
treadle_observer, treadle_operator;
