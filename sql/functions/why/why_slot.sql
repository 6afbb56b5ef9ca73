-- why_slot: the concurrency key of a task is full, or its free slot was not given away yet.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

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
        and (tasks.rank - treadle.shift_at(lanes.ageing, v_ms), tasks.id)
        < (p_task.rank - treadle.shift_at(own.ageing, v_ms), p_task.id)
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
      case when v_ahead > 0 then format('; %s wait before it', v_ahead) else '' end
    );
    return next;
  elsif p_task.slot = 'waiting' then
    reason := 'admission';
    sentence := format(
      'concurrency key %s has room, %s of %s%s: the next claim or the promoter gives it away',
      p_task.concurrency_key, v_held, v_max,
      case when v_ahead > 0 then format(', and %s wait before it', v_ahead) else '' end
    );
    return next;
  end if;
end;
$$;

comment on function treadle.why_slot(treadle.tasks) is
'Internal: who holds the slots of the concurrency key of a task.';

revoke all on function treadle.why_slot(treadle.tasks) from public;
