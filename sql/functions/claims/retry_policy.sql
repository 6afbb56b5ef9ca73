-- retry_policy: the policy in force for a task: its own, over its type's, over its queue's.
--
-- Key by key: a task may change only the strategy and inherit the rest.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.retry_policy(p_queue text, p_type text, p_retry jsonb)
returns jsonb
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    '{
      "strategy": "exponential", "initial_delay_s": 10, "multiplier": 2, "max_delay_s": 300,
      "jitter": true, "retry_on": null,
      "no_retry_on": ["auth_failure", "budget_exceeded", "refused"],
      "max_rate_limits": 100, "poison": true
    }'::jsonb
    || coalesce((select queues.retry from treadle.queues where queues.name = p_queue), '{}')
    || coalesce(
      (select task_types.retry from treadle.task_types where task_types.name = p_type), '{}'
    )
    || coalesce(p_retry, '{}')
$$;

comment on function treadle.retry_policy(text, text, jsonb) is
'The retry policy that applies to a task of this queue and type with these own settings.';

revoke all on function treadle.retry_policy(text, text, jsonb) from public;
grant execute on function treadle.retry_policy(text, text, jsonb) to
treadle_observer, treadle_operator;
