-- set_priority: change the priority of tasks that wait, by hand.
--
-- select * from treadle.set_priority(array[id], 5, p_reason => 'a customer waits');
-- select * from treadle.set_priority(array[id], p_tier => 'low');
--
-- Give one of priority, tier and urgency. Age, deadline and critical path count as before. The
-- verdict is prioritised, already (it has this priority), running (an agent has it), ended or
-- unknown; only the first changes anything, and writes an event task.prioritised.
--
-- Concurrency: rows are locked in id order, then their state is read.
-- Lock order:  tasks, then the history.
-- Raises:      TR001 invalid argument.

-- chosen_priority: return the priority that one of three scales names.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.chosen_priority(
  p_priority  integer,
  p_tier      text,
  p_urgency   integer
)
returns smallint
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if num_nonnulls(p_priority, p_tier, p_urgency) <> 1 then
    perform treadle.raise_error(
      'give one of priority, tier and urgency', jsonb_build_object('argument', 'priority'),
      'For example priority 5, tier high, or urgency 8.'
    );
  elsif p_priority not between 0 and 100 then
    perform treadle.raise_invalid_priority(p_priority);
  end if;
  return case
    when p_tier is not null then treadle.priority_of_tier(p_tier)
    when p_urgency is not null then treadle.priority_of_urgency(p_urgency)
    else p_priority
  end;
end;
$$;

-- waiting_states: return the states of tasks that wait; a change of their priority has an effect.
create or replace function treadle.waiting_states()
returns text[]
language sql
immutable
parallel safe
return array['created', 'pending', 'ready', 'retrying', 'blocked'];

-- prioritise_rows: set the priority of those tasks that wait and have another one, and return them.
--
-- A priority only shifts the rank: age, deadline and critical path are parts of the rank, and the
-- lane does not depend on the priority.
--
-- Concurrency: the caller has locked the rows.
-- Lock order:  tasks, then the history.
create or replace function treadle.prioritise_rows(
  p_ids       uuid[],
  p_priority  smallint,
  p_reason    text,
  p_actor     text
)
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_now timestamptz := treadle.clock();
  v_ids uuid[];
begin
  with waiting as materialized (
    select tasks.id, tasks.priority
    from unnest(p_ids) as wanted (id)
    inner join treadle.tasks on wanted.id = tasks.id
    where tasks.status = any (treadle.waiting_states()) and tasks.priority <> p_priority
  ),

  changed as (
    update treadle.tasks
    set
      priority = p_priority,
      rank = tasks.rank + (p_priority - waiting.priority) * 1000000::bigint
    from waiting
    where tasks.id = waiting.id
    returning tasks.id, tasks.queue, waiting.priority as was
  ),

  told as (
    insert into treadle.events (at, kind, task_id, queue, actor, data)
    select
      v_now, 'task.prioritised', changed.id, changed.queue, p_actor,
      jsonb_build_object('was', changed.was, 'priority', p_priority, 'reason', p_reason)
    from changed
    order by changed.id
  )

  select array_agg(changed.id) into v_ids from changed;
  return coalesce(v_ids, '{}');
end;
$$;

create or replace function treadle.set_priority(
  p_ids       uuid[],
  p_priority  integer default null,
  p_tier      text default null,
  p_urgency   integer default null,
  p_reason    text default null,
  p_actor     text default null
)
returns table (id uuid, verdict text, priority smallint)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_actor    text := coalesce(p_actor, session_user);
  v_priority smallint := treadle.chosen_priority(p_priority, p_tier, p_urgency);
  v_changed  uuid[];
begin
  perform treadle.check_actor(v_actor, p_reason);
  perform treadle.ensure_durable();
  perform treadle.lock_tasks(p_ids);
  v_changed := treadle.prioritise_rows(p_ids, v_priority, p_reason, v_actor);

  return query
  select
    given.id,
    case
      when given.id in (select each.id from unnest(v_changed) as each (id)) then 'prioritised'
      when tasks.id is null then 'unknown'
      when tasks.completed_at is not null then 'ended'
      when tasks.claim_token is not null then 'running'
      else 'already'
    end,
    tasks.priority
  from unnest(p_ids) with ordinality as given (id, at)
  left join treadle.tasks on given.id = tasks.id
  order by given.at;
end;
$$;

comment on function treadle.set_priority(uuid[], integer, text, integer, text, text) is
'Change the priority of tasks that wait; returns a verdict and the priority of each.';

grant execute on function treadle.set_priority(uuid[], integer, text, integer, text, text) to
treadle_producer, treadle_operator;
