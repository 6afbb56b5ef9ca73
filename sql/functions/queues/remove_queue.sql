-- remove_queue: remove a queue that has no tasks and that nothing refers to.
--
-- Tasks that have ended count as well: they may be retried. The queue default and those of the
-- protocols always stay.
--
-- Concurrency: waits for the transactions that have read queues, because one of them may be about
-- to insert a task: at most two seconds, since others queue up behind the lock.
-- Lock order:  queues, lanes, then the history.
-- Raises:      TR001 invalid argument, TR102 illegal transition, TR202 unknown queue.

-- check_queue_unused: raise an error if a queue has tasks or if something refers to it.
--
-- Raises:      TR102 illegal transition.
create or replace function treadle.check_queue_unused(p_name text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
  v_hint    text;
begin
  select found.problem, found.hint
  into v_problem, v_hint
  from (
    select
      'it has tasks' as problem,
      'Tasks that have ended count until they are pruned; see: treadle retention' as hint
    where exists (select from treadle.tasks where tasks.queue = p_name)
    union all
    (
      select format('agent %s serves it', agents.id), 'Stop the agent first.'
      from treadle.agents
      where p_name = any (agents.queues) and agents.status <> 'offline'
      limit 1
    )
    union all
    (
      select format('schedule %s enqueues into it', schedules.name), 'Delete the schedule first.'
      from treadle.schedules
      where
        jsonb_path_exists(
          schedules.template, '$.**.queue ? (@ == $name)', jsonb_build_object('name', p_name)
        )
      limit 1
    )
    union all
    (
      select format('trigger %s enqueues into it', triggers.name), 'Delete the trigger first.'
      from treadle.triggers
      where
        jsonb_path_exists(
          triggers.template, '$.**.queue ? (@ == $name)', jsonb_build_object('name', p_name)
        )
      limit 1
    )
  ) as found
  limit 1;
  if v_problem is not null then
    perform treadle.raise_error(
      format('queue %s cannot be deleted: %s', p_name, v_problem),
      jsonb_build_object('queue', p_name), v_hint, 'TR102'
    );
  end if;
end;
$$;

create or replace function treadle.remove_queue(p_name text, p_actor text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
as $$
begin
  if p_name = 'default'
    or exists (select from treadle.protocol_queues as preset where preset.name = p_name)
  then
    perform treadle.raise_error(
      format('queue %s cannot be deleted: Treadle itself uses it', p_name),
      jsonb_build_object('argument', 'queue'),
      format('To stop claims from it: treadle queues pause %s', p_name)
    );
  end if;
  if not exists (select from treadle.queues where queues.name = p_name) then
    perform treadle.check_names(p_name, null);
  end if;
  perform treadle.check_queue_unused(p_name);

  lock table treadle.queues in access exclusive mode;
  perform treadle.check_queue_unused(p_name);
  delete from treadle.idle_queues where idle_queues.queue = p_name;
  delete from treadle.lanes where lanes.queue = p_name;
  delete from treadle.queues where queues.name = p_name;
  insert into treadle.events (at, kind, queue, actor, data)
  values (treadle.clock(), 'queue.removed', p_name, coalesce(p_actor, session_user), '{}');
end;
$$;

comment on function treadle.remove_queue(text, text) is
'Remove a queue that has no tasks and that no agent, schedule or trigger uses.';

grant execute on function treadle.remove_queue(text, text) to treadle_operator;
