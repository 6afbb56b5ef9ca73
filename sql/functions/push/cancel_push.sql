-- cancel_push: cancel an entry of queue `push` and return its state.
--
-- select treadle.cancel_push('queue-0198f3c2-0000-7000-8000-000000000000', 'not needed', 'me');
--
-- A waiting entry is never sent. An entry that an agent works on is cancelled at once: the agent's
-- result is ignored, and the dispatcher asks the agent to stop. Cancelling again is not an error.
--
-- Concurrency: see cancel_tasks.
-- Lock order:  tasks, then the history.
-- Raises:      TR102 illegal transition, TR201 task not found.

-- push_id: return the task of a queue id; an error if it is not in queue `push`.
--
-- Raises:      TR201 task not found.
create or replace function treadle.push_id(p_queue_id text)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id uuid;
begin
  if p_queue_id ~ '^queue-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    select tasks.id
    into v_id
    from treadle.tasks
    where tasks.id = substr(p_queue_id, 7)::uuid and tasks.queue = 'push';
  end if;
  if v_id is null then
    perform treadle.raise_error(
      format('there is no %s in the queue', coalesce(left(p_queue_id, 60), 'such entry')),
      jsonb_build_object('queue_id', left(p_queue_id, 200)),
      'Entries that have ended are kept until they are pruned.',
      'TR201'
    );
  end if;
  return v_id;
end;
$$;

create or replace function treadle.cancel_push(
  p_queue_id  text,
  p_reason    text default null,
  p_actor     text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id      uuid := treadle.push_id(p_queue_id);
  v_verdict text;
  v_state   text;
begin
  select cancelled.verdict
  into v_verdict
  from treadle.cancel_tasks(array[v_id], p_reason, p_actor) as cancelled
  limit 1;
  if v_verdict <> 'ended' then
    return 'cancelled';
  end if;
  select entry.state into v_state from treadle.push_queue as entry where entry.id = v_id;
  perform treadle.raise_error(
    format('%s is %s and cannot be cancelled', p_queue_id, v_state),
    jsonb_build_object('queue_id', p_queue_id, 'state', v_state, 'allowed', '[]'::jsonb),
    'Only an entry that is pending, dispatching or working can be cancelled.',
    'TR102'
  );
end;
$$;

comment on function treadle.cancel_push(text, text, text) is
'Cancel an entry of queue push that has not ended.';

grant execute on function treadle.cancel_push(text, text, text) to
treadle_producer, treadle_operator;
