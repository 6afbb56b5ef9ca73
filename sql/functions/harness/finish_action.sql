-- finish_action: record how an action ended: done, failed, or interrupted.
--
-- done completes the task. failed schedules another try after 10 s, 20 s, 40 s and so on, up to
-- p_max_tries. interrupted leaves the decision to an operator, unless the callback is safe to
-- repeat. A late result is also accepted for an action marked as interrupted, or one that waits to
-- be redelivered, unless an operator has decided about it. A repeated call changes nothing. Returns
-- the current status of the action, or lost.
--
-- Concurrency: the rows are locked; the token is checked on the locked row.
-- Lock order:  tasks, harness_actions, results.
-- Raises:      TR001 invalid argument.

-- close_action: mark the result of a task as consumed.
--
-- Concurrency: the caller has locked the task and its action.
-- Lock order:  results.
create or replace function treadle.close_action(p_id uuid, p_token uuid)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  update treadle.results
  set consumed_at = treadle.clock(), consumed_token = p_token
  where results.task_id = p_id and results.consumed_token is null;
  delete from treadle.harness_nudges where harness_nudges.task_id = p_id;
end;
$$;

-- emit_action_event: emit an event about an action.
create or replace function treadle.emit_action_event(
  p_id      uuid,
  p_what    text,
  p_actor   text,
  p_note    text
)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  insert into treadle.events (at, kind, task_id, queue, actor, data)
  values (
    treadle.clock(), 'harness.' || p_what, p_id, 'harness', coalesce(p_actor, session_user),
    jsonb_build_object('note', left(split_part(p_note, e'\n', 1), 2000))
  )
$$;

create or replace function treadle.finish_action(
  p_id       uuid,
  p_token    uuid,
  p_outcome  text default 'done',
  p_error    text default null,
  p_max_tries    integer default 3
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now    timestamptz := treadle.clock();
  v_action treadle.harness_actions;
  v_to     text;
begin
  if p_outcome is null or p_outcome not in ('done', 'failed', 'interrupted') then
    perform treadle.raise_error(
      format('an action cannot end as %s', left(quote_nullable(p_outcome), 60)),
      jsonb_build_object('argument', 'outcome'), 'Use done, failed or interrupted.'
    );
  end if;
  perform treadle.ensure_durable();
  perform from treadle.tasks where tasks.id = p_id for no key update;
  select harness_actions.* into v_action
  from treadle.harness_actions
  where harness_actions.task_id = p_id and harness_actions.token = p_token
  for no key update;
  if not found then
    return 'lost';
  elsif v_action.status not in ('executing', 'interrupted') and not (
    -- An operator who runs it again sets the tries back.
    v_action.status = 'waiting' and v_action.redeliver and v_action.tries > 0
    and p_outcome = 'done'
  ) then
    return v_action.status;
  end if;

  v_to := case
    when v_action.tries < p_max_tries
      and (p_outcome = 'failed' or p_outcome = 'interrupted' and v_action.redeliver)
      then 'waiting'
    else p_outcome
  end;
  update treadle.harness_actions
  set
    status = v_to,
    lease_until = null,
    next_try_at = case
      when v_to = 'waiting' and p_outcome = 'interrupted' then v_now
      when v_to = 'waiting'
        then v_now + make_interval(secs => least(3600, 5 * power(2, least(v_action.tries, 12))))
    end,
    ended_at = case when v_to <> 'waiting' then v_now end,
    error = left(p_error, 20000)
  where harness_actions.task_id = p_id;
  if v_to = 'done' then
    perform treadle.close_action(p_id, p_token);
  else
    perform treadle.emit_action_event(
      p_id, case v_to when 'waiting' then 'retry_scheduled' else v_to end, null, p_error
    );
  end if;
  return v_to;
end;
$$;

comment on function treadle.finish_action(uuid, uuid, text, text, integer) is
'End a harness action as done, failed or interrupted; a failed action is tried again.';

grant execute on function treadle.finish_action(uuid, uuid, text, text, integer)
to treadle_producer;
