-- why_waiting: what a task waits for before any agent could claim it.

-- task_label: name a task: its name in its DAG, else its type and the end of its id.
create or replace function treadle.task_label(p_id uuid, p_name text, p_type text)
returns text
language sql
immutable
parallel safe
return coalesce(p_name, p_type || ' …' || pg_catalog.right(p_id::pg_catalog.text, 8));

comment on function treadle.task_label(uuid, text, text) is
'A short name of a task.';

-- why_held: the task is held, or its DAG is not started.
create or replace function treadle.why_held(p_task treadle.tasks)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_dag text;
begin
  if p_task.status <> 'created' then
    return;
  end if;

  select dags.name
  into v_dag
  from treadle.dags
  where dags.id = p_task.dag_id and dags.status = 'open';
  if found then
    sentence := format(
      'DAG %s is not started: start it with: treadle dags start %s', v_dag,
      right(p_task.dag_id::text, 8)
    );
    reason := 'dag_open';
    detail := jsonb_build_object('dag_id', p_task.dag_id, 'dag', v_dag);
  else
    sentence := format(
      'held: release it with: select treadle.release_held_tasks(''{%s}'')', p_task.id
    );
    reason := 'held';
    detail := jsonb_build_object('task_id', p_task.id);
  end if;
  return next;
end;
$$;

-- why_answers: the questions and events that a task waits for.
create or replace function treadle.why_answers(p_task treadle.tasks, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  if p_task.status <> 'blocked' then
    return;
  end if;

  return query
  select
    case
      when waits.expires_at <= p_now
        then 'its question expired at ' || treadle.format_utc(waits.expires_at)
        || ' and no promoter has processed it: '
      when waits.kind = 'event'
        then format('waiting %s for an event: ', treadle.format_duration(p_now - waits.opened_at))
      when waits.approvers > 1 then format(
        'waiting %s for the answers of %s people (%s answered): ',
        treadle.format_duration(p_now - waits.opened_at), waits.approvers, votes.given
      )
      else format('waiting %s for an answer: ', treadle.format_duration(p_now - waits.opened_at))
    end
    || coalesce(
      waits.question || format(' (answer with: treadle waits answer %s)', right(waits.id::text, 8)),
      rtrim(waits.event || ' ' || waits.event_key)
    ),
    case
      when waits.expires_at <= p_now then 'wait_expired'
      when waits.kind = 'event' then 'event'
      when waits.kind = 'budget' then 'budget_question'
      else 'question'
    end,
    case when waits.expires_at > p_now then waits.expires_at end,
    jsonb_strip_nulls(
      jsonb_build_object(
        'wait_id', waits.id, 'kind', waits.kind, 'name', waits.name, 'question', waits.question,
        'options', waits.options, 'event', waits.event, 'event_key', waits.event_key,
        'approvers', waits.approvers, 'answers', votes.given,
        'opened_at', treadle.format_rfc3339(waits.opened_at),
        'expires_at', treadle.format_rfc3339(waits.expires_at), 'budget_id', waits.budget_id
      )
    )
  from treadle.waits
  cross join lateral (
    select count(*) as given from treadle.answers where answers.wait_id = waits.id
  ) as votes
  where waits.task_id = p_task.id and waits.status = 'open' and waits.awaited
  order by waits.opened_at, waits.id;
end;
$$;

-- why_dependencies: the tasks that have to end before this one may start.
create or replace function treadle.why_dependencies(p_task treadle.tasks)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_edges integer;
  v_named text;
  v_tasks jsonb;
begin
  if p_task.blocked_count = 0 then
    return;
  end if;

  select count(*) into v_edges
  from treadle.dependencies
  where dependencies.task_id = p_task.id;

  -- Tasks that will not end by themselves come first.
  select
    string_agg(edges.words, ', ' order by edges.number) filter (where edges.number <= 5),
    jsonb_agg(edges.entry order by edges.number)
  into v_named, v_tasks
  from (
    select
      row_number() over (order by others.completed_at is null, others.id) as number,
      treadle.task_label(others.id, others.name, others.type) || case others.status
        when 'dead_lettered'
          then
            ' (dead-lettered' || coalesce(': ' || treadle.last_line(others.failure_reason), '')
            || ')'
        when 'cancelled' then ' (was cancelled)'
        else ''
      end as words,
      jsonb_build_object(
        'id', others.id, 'name', others.name, 'type', others.type, 'status', others.status
      ) as entry
    from treadle.dependencies
    inner join treadle.tasks as others on dependencies.depends_on = others.id
    where dependencies.task_id = p_task.id and dependencies.met_at is null
    order by others.completed_at is null, others.id
    limit 100
  ) as edges;

  sentence := format(
    'waiting for %s of %s dependencies%s%s', p_task.blocked_count,
    greatest(v_edges, p_task.blocked_count), coalesce(': ' || v_named, ''),
    case
      when p_task.blocked_count > 5 then format(' and %s more', p_task.blocked_count - 5) else ''
    end
  );
  reason := 'dependencies';
  detail := jsonb_build_object(
    'open', p_task.blocked_count, 'all', v_edges, 'tasks', coalesce(v_tasks, '[]')
  );
  return next;
end;
$$;

-- why_time: the task waits for a time, or the time has passed and no promoter has processed it.
create or replace function treadle.why_time(p_task treadle.tasks, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_at timestamptz := coalesce(p_task.retry_at, p_task.run_at);
begin
  detail := jsonb_strip_nulls(
    jsonb_build_object(
      'run_at', treadle.format_rfc3339(p_task.run_at), 'retry_at', treadle.format_rfc3339(
        p_task.retry_at
      ),
      'attempt', p_task.attempt,
      'max_attempts', p_task.max_attempts, 'class', p_task.failure_class
    )
  );
  if v_at > p_now then
    until := v_at;
    reason := case when p_task.status = 'retrying' then 'retry_at' else 'run_at' end;
    sentence := case reason
      when 'retry_at' then format(
        'next attempt in %s, after: %s', treadle.format_duration(v_at - p_now),
        coalesce(
          p_task.failure_class || coalesce(': ' || treadle.last_line(p_task.failure_reason), ''),
          'no reason was given'
        )
      )
      else format(
        'scheduled for %s, in %s', treadle.format_utc(v_at), treadle.format_duration(v_at - p_now)
      )
    end;
    return next;
  elsif
    p_task.status = 'retrying'
    or (
      p_task.status = 'pending' and p_task.blocked_count = 0 and p_task.slot is null
      and p_task.budget_id is null and v_at is not null
    )
  then
    reason := 'promoter';
    sentence := format(
      'due since %s, but no promoter has processed it (treadle promoter)',
      treadle.format_utc(v_at)
    );
    return next;
  end if;
end;
$$;

-- why_slot: the concurrency key of the task is full, or a free slot has not been assigned yet.
create or replace function treadle.why_slot(p_task treadle.tasks)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_max   integer;
  v_ms    bigint := treadle.rank_ms(treadle.clock());
  v_held  integer;
  v_ahead integer := 0;
  v_words text;
  v_tasks jsonb;
begin
  if p_task.concurrency_key is null or p_task.slot = 'held' then
    return;
  end if;

  v_max := treadle.key_limit(p_task.concurrency_key);

  select
    count(*),
    string_agg(holders.words, ', ') filter (where holders.number <= 3),
    jsonb_agg(holders.entry) filter (where holders.number <= 100)
  into v_held, v_words, v_tasks
  from (
    select
      row_number() over (order by tasks.id) as number,
      'task …' || right(tasks.id::text, 8)
      || coalesce(' on agent ' || tasks.agent_id, ', which is ' || tasks.status) as words,
      jsonb_build_object(
        'id', tasks.id, 'agent', tasks.agent_id, 'status', tasks.status
      ) as entry
    from treadle.tasks
    where tasks.concurrency_key = p_task.concurrency_key and tasks.slot = 'held'
  ) as holders;

  if p_task.slot = 'waiting' then
    select count(*)
    into v_ahead
    from (
      select
      from treadle.tasks
      inner join treadle.lanes on tasks.lane_id = lanes.id
      inner join treadle.lanes as own on own.id = p_task.lane_id
      where
        tasks.concurrency_key = p_task.concurrency_key and tasks.slot = 'waiting'
        and (tasks.rank - treadle.ageing_offset_at(lanes.ageing, v_ms), tasks.id)
        < (p_task.rank - treadle.ageing_offset_at(own.ageing, v_ms), p_task.id)
      limit 10000
    ) as others;
  end if;

  detail := jsonb_build_object(
    'key', p_task.concurrency_key, 'max', v_max, 'held', v_held, 'ahead', v_ahead,
    'tasks', coalesce(v_tasks, '[]')
  );
  if v_held >= v_max then
    reason := 'key_full';
    sentence := format(
      'concurrency key %s is full: %s of %s%s%s', p_task.concurrency_key, v_held, v_max,
      ', held by ' || v_words || case when v_held > 3 then ' and others' else '' end,
      case when v_ahead > 0 then format('; %s are ahead of it', v_ahead) else '' end
    );
    return next;
  elsif p_task.slot = 'waiting' then
    reason := 'admission';
    sentence := format(
      'concurrency key %s has room, %s of %s%s: the next claim or the promoter assigns a slot',
      p_task.concurrency_key, v_held, v_max,
      case when v_ahead > 0 then format(', and %s are ahead of it', v_ahead) else '' end
    );
    return next;
  end if;
end;
$$;

create or replace function treadle.why_waiting(p_task treadle.tasks, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_task.status = 'ready' then
    return;
  end if;
  return query select * from treadle.why_held(p_task);
  return query select * from treadle.why_answers(p_task, p_now);
  return query select * from treadle.why_dependencies(p_task);
  return query select * from treadle.why_time(p_task, p_now);
  return query select * from treadle.why_slot(p_task);
end;
$$;

grant execute on function treadle.task_label(uuid, text, text) to
treadle_observer, treadle_operator;
