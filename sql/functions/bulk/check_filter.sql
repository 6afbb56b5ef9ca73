-- check_filter: refuse a filter that is empty, unknown or malformed; returns the states it names.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR203 unknown type.

create or replace function treadle.check_filter(
  p_filter   jsonb,
  p_allowed  text[],
  p_default  text[]
)
returns text[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_classes constant text[] := array[
    'auth_failure', 'budget_exceeded', 'crash', 'error', 'invalid_output', 'rate_limit', 'refused',
    'timeout', 'unavailable'
  ];
  v_problem text;
  v_states  text[] := p_default;
begin
  v_problem := case
    when jsonb_typeof(p_filter) is distinct from 'object' then 'it must be a json object'
    when p_filter = '{}' then 'it is empty, and would mean every task'
    else (
      select case
        when given.key <> all (treadle.filter_keys())
          then format('there is no %s', quote_literal(treadle.excerpt_name(given.key)))
        when given.key = 'status' and jsonb_typeof(given.value) = 'array' then null
        when jsonb_typeof(given.value) <> 'string' or given.value = '""'
          then format('%s must be a text that is not empty', given.key)
        when given.key = 'failure_class' and given.value #>> '{}' <> all (c_classes)
          then 'failure_class must be one of ' || array_to_string(c_classes, ', ')
      end as words
      from jsonb_each(p_filter) as given
      order by words nulls last
      limit 1
    )
  end;
  if v_problem is null and p_filter ? 'status' then
    v_states := array(
      select stated.name
      from jsonb_path_query(p_filter, 'lax $.status[*]') as wanted (word)
      cross join lateral (values (wanted.word #>> '{}')) as stated (name)
    );
    if v_states = '{}' or not coalesce(v_states <@ p_allowed, false) then
      v_problem := format('status must be one or more of %s', array_to_string(p_allowed, ', '));
    end if;
  end if;
  begin
    perform
      (p_filter ->> 'dag_id')::uuid, (p_filter ->> 'project_id')::uuid,
      treadle.moment_of(p_filter ->> 'created_before', treadle.clock()),
      treadle.moment_of(p_filter ->> 'created_after', treadle.clock())
    where v_problem is null;
  exception
    when data_exception then
      v_problem := sqlerrm;
  end;
  if v_problem is not null then
    perform treadle.refuse(
      'this filter cannot be used: ' || v_problem,
      jsonb_build_object('argument', 'filter'),
      format(
        'For example {"queue": "mail", "created_before": "2h"}. It knows %s.',
        array_to_string(treadle.filter_keys(), ', ')
      )
    );
  end if;
  perform treadle.check_names(p_filter ->> 'queue', null)
  where p_filter ? 'queue' and not exists (
    select from treadle.queues where queues.name = p_filter ->> 'queue'
  );
  perform treadle.check_names(queues.name, p_filter ->> 'type')
  from treadle.queues
  where p_filter ? 'type'
  limit 1;
  return v_states;
end;
$$;

comment on function treadle.check_filter(jsonb, text[], text[]) is
'Internal: checks a filter of tasks; the states it asks for, or those of the caller.';

revoke all on function treadle.check_filter(jsonb, text[], text[]) from public;
