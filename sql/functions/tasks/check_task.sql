-- check_task: refuse values that no task can have.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_task(p_task treadle.tasks, p_now timestamptz)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong text;
  v_must  text;
begin
  select rules.name, rules.must
  into v_wrong, v_must
  from (
    values
    ('priority', p_task.priority between 0 and 100, 'be 0 (critical) to 100 (background)'),
    ('max_attempts', p_task.max_attempts between 1 and 1000, 'be 1 to 1000'),
    ('timeout_s', p_task.timeout_s > 0 and p_task.timeout_s <= 31536000, 'be above 0'),
    ('ageing_rate', p_task.ageing_rate between 0 and 1000, 'be 0 to 1000 points a minute'),
    ('max_cost_usd', p_task.max_cost_usd >= 0 and p_task.max_cost_usd < 'Infinity', 'be 0 or more'),
    ('max_tokens', p_task.max_tokens >= 0, 'be 0 or more'),
    ('on_budget', p_task.on_budget in ('ask', 'fail'), 'be ask or fail'),
    ('report', p_task.report in ('required', 'optional'), 'be required or optional'),
    (
      'run_at',
      treadle.is_moment(p_task.run_at) and p_task.run_at < p_now + interval '10 years',
      'be a moment within ten years'
    ),
    ('deadline_at', treadle.is_moment(p_task.deadline_at), 'be a moment from 1970 to 9999'),
    (
      'idempotency_key',
      octet_length(p_task.idempotency_key) between 1 and 200,
      'have 1 to 200 bytes'
    ),
    (
      'concurrency_key',
      octet_length(p_task.concurrency_key) between 1 and 200,
      'have 1 to 200 bytes'
    ),
    ('consumer', octet_length(p_task.consumer) between 1 and 200, 'have 1 to 200 bytes'),
    ('title', octet_length(p_task.title) <= 1000, 'have at most 1000 bytes'),
    (
      'capabilities',
      cardinality(p_task.capabilities) <= 50 and array_position(p_task.capabilities, null) is null,
      'be at most 50 names'
    )
  ) as rules (name, good, must)
  -- An empty value is no value: the rule does not apply.
  where not rules.good
  limit 1;

  if found then
    perform treadle.refuse(
      format('%s must %s', v_wrong, v_must),
      jsonb_build_object('argument', v_wrong),
      format('Leave %s out for the default.', v_wrong)
    );
  end if;

  if p_task.retry is not null then
    perform treadle.check_retry(p_task.retry);
  end if;
  if p_task.validation is not null then
    perform treadle.check_validation(p_task.validation);
  end if;
  if p_task.models is not null or p_task.fallback_models is not null then
    perform treadle.check_models(p_task.models || p_task.fallback_models);
  end if;
end;
$$;

comment on function treadle.check_task(treadle.tasks, timestamptz) is
'Internal: refuses a task whose values are out of range.';

revoke all on function treadle.check_task(treadle.tasks, timestamptz) from public;
