-- bulk_filter: find tasks that match a filter, and report what became of them.

-- filter_keys: return the keys of a task filter.
create or replace function treadle.filter_keys()
returns text[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select array[
    'queue', 'type', 'status', 'tag', 'dag_id', 'project_id', 'agent', 'failure_class', 'reason',
    'created_before', 'created_after', 'created_by', 'source'
  ]
$$;

-- parse_time: parse a time, or an age such as 90s, 15m, 2h or 7d.
--
-- Raises:      data exceptions, which the caller turns into an error.
create or replace function treadle.parse_time(p_text text, p_now timestamptz)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts text[] := regexp_match(p_text, '^([0-9]{1,9})([smhdw])$');
  v_at    timestamptz;
begin
  v_at := case
    when v_parts is null then p_text::timestamptz
    else p_now - make_interval(
      secs => v_parts[1]::bigint * case v_parts[2]
        when 's' then 1 when 'm' then 60 when 'h' then 3600 when 'd' then 86400 else 604800
      end
    )
  end;
  if not isfinite(v_at) then
    raise data_exception using
      message = format('%L is not a valid time', treadle.excerpt_name(p_text));
  end if;
  return v_at;
end;
$$;

-- check_filter: reject a filter that is empty, unknown or malformed; returns the states it names.
--
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
  v_problem text;
  v_states  text[] := p_default;
begin
  v_problem := case
    when jsonb_typeof(p_filter) is distinct from 'object' then 'it must be a JSON object'
    when p_filter = '{}' then 'it is empty and would match every task'
    else (
      select case
        when given.key <> all (treadle.filter_keys())
          then format('unknown key %s', quote_literal(treadle.excerpt_name(given.key)))
        when given.key = 'status' and jsonb_typeof(given.value) = 'array' then null
        when jsonb_typeof(given.value) <> 'string' or given.value = '""'
          then format('%s must be a text that is not empty', given.key)
        when
          given.key = 'failure_class'
          and given.value #>> '{}' <> all (treadle.failure_classes())
          then
            'failure_class must be one of ' || array_to_string(treadle.failure_classes(), ', ')
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
      treadle.parse_time(p_filter ->> 'created_before', treadle.clock()),
      treadle.parse_time(p_filter ->> 'created_after', treadle.clock())
    where v_problem is null;
  exception
    when data_exception then
      v_problem := sqlerrm;
  end;
  if v_problem is not null then
    perform treadle.raise_error(
      'this filter cannot be used: ' || v_problem,
      jsonb_build_object('argument', 'filter'),
      format(
        'For example {"queue": "mail", "created_before": "2h"}. Keys: %s.',
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

-- matching_tasks: find the tasks that match a filter, in order of id, or so many of the newest.
--
-- agent is the agent that has the task or had it last; reason is part of its failure text. The
-- filter has been checked already.
create or replace function treadle.matching_tasks(
  p_filter  jsonb,
  p_states  text[],
  p_ids     uuid[] default null,
  p_newest  integer default null
)
returns table (id uuid, queue text, type text, status text)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := treadle.clock();
  v_before timestamptz := treadle.parse_time(p_filter ->> 'created_before', v_now);
  v_after  timestamptz := treadle.parse_time(p_filter ->> 'created_after', v_now);
  v_queue  text := p_filter ->> 'queue';
  v_type   text := p_filter ->> 'type';
  v_tag    text := p_filter ->> 'tag';
  v_dag    uuid := p_filter ->> 'dag_id';
  v_owner  uuid := p_filter ->> 'project_id';
  v_agent  text := p_filter ->> 'agent';
  v_class  text := p_filter ->> 'failure_class';
  v_reason text := p_filter ->> 'reason';
  v_by     text := p_filter ->> 'created_by';
  v_source text := p_filter ->> 'source';
begin
  -- Planned with the actual values: a condition that was not given costs nothing.
  return query
  select tasks.id, tasks.queue, tasks.type, tasks.status
  from treadle.tasks
  where
    tasks.status = any (p_states)
    and (p_ids is null or tasks.id = any (p_ids))
    and (v_queue is null or tasks.queue = v_queue)
    and (v_type is null or tasks.type = v_type)
    and (v_tag is null or v_tag = any (tasks.tags))
    and (v_dag is null or tasks.dag_id = v_dag)
    and (v_owner is null or tasks.project_id = v_owner)
    and (v_class is null or tasks.failure_class = v_class)
    and (v_reason is null or position(v_reason in tasks.failure_reason) > 0)
    and (v_before is null or tasks.created_at < v_before)
    and (v_after is null or tasks.created_at > v_after)
    and (v_by is null or tasks.created_by = v_by)
    and (
      v_source is null or exists (
        select from treadle.task_options
        where task_options.task_id = tasks.id and task_options.source = v_source
      )
    )
    and (
      v_agent is null or v_agent = coalesce(
        tasks.agent_id,
        (
          select attempts.agent_id from treadle.attempts
          where attempts.task_id = tasks.id
          order by attempts.ended_at desc
          limit 1
        )
      )
    )
  order by
    case when p_newest is null then tasks.id end,
    case when p_newest is not null then tasks.id end desc
  limit p_newest;
end;
$$;

-- bulk_tasks: return the tasks that match a filter, up to a limit, and mark the rest as left.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.bulk_tasks(
  p_filter  jsonb,
  p_states  text[],
  p_limit   integer
)
returns treadle.bulk_task[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_limit is null or p_limit not between 1 and 100000 then
    perform treadle.raise_error(
      format('limit must be 1 to 100000, not %s', coalesce(p_limit::text, 'null')),
      jsonb_build_object('argument', 'limit'), 'Call again for the rest.'
    );
  end if;
  return array(
    select
      row(
        each.id, each.queue, each.type, each.status,
        case when each.at <= p_limit then 'found' else 'left' end,
        case when each.at > p_limit then 'beyond the limit: call again' end
      )::treadle.bulk_task
    from treadle.matching_tasks(p_filter, p_states) with ordinality
      as each (id, queue, type, status, at)
    order by each.at
  );
end;
$$;

-- record_bulk_results: record the result for each task of a bulk operation.
create or replace function treadle.record_bulk_results(
  p_found    treadle.bulk_task[],
  p_ids      uuid[],
  p_verdict  text
)
returns treadle.bulk_task[]
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    array(
      select
        row(
          each.id, each.queue, each.type, each.status,
          case
            when each.verdict <> 'found' then each.verdict
            when each.id in (select own.id from unnest(p_ids) as own (id)) then p_verdict
            else 'moved'
          end,
          case
            when each.verdict <> 'found' then each.why
            when each.id not in (select own.id from unnest(p_ids) as own (id))
              then 'it no longer matches the filter'
          end
        )::treadle.bulk_task
      from unnest(p_found) as each
    )
$$;

-- count_bulk: count the tasks of a bulk operation by queue, type, state and result.
--
-- Reasons that differ only in ids and names are counted together, and the first of them is shown.
create or replace function treadle.count_bulk(p_found treadle.bulk_task[])
returns table (queue text, type text, status text, verdict text, why text, tasks bigint)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select each.queue, each.type, each.status, each.verdict, min(each.why), count(*)
  from unnest(p_found) as each
  group by
    each.queue, each.type, each.status, each.verdict,
    regexp_replace(each.why, '''[^'']*''|[0-9a-f-]{36}', '', 'g')
  order by each.verdict, count(*) desc, each.queue, each.type, each.status
$$;
