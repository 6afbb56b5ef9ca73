-- event_kinds: the list of built-in event kinds, and checks of kinds.

-- builtin_event_kinds: return all kinds of events that treadle itself emits.
--
-- A kind is a noun and what happened to it, in the past tense: task.completed. Statuses are not
-- kinds. Applications cannot emit these, or other kinds with the same first word; see check_topic.
create or replace function treadle.builtin_event_kinds()
returns text[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select array[
    'agent.activated', 'agent.added', 'agent.drain_started', 'agent.removed', 'agent.timed_out',
    'agent.went_offline',
    'breaker.closed', 'breaker.half_opened', 'breaker.opened',
    'budget.exhausted', 'budget.removed', 'budget.set', 'budget.warned',
    'dag.cancelled', 'dag.completed', 'dag.failed', 'dag.progressed', 'dag.reopened',
    'dag.started',
    'dead_letter.escalated',
    'gate.closed', 'gate.defined', 'gate.opened',
    'harness.failed', 'harness.interrupted', 'harness.nudges_allowed', 'harness.nudges_forbidden',
    'harness.rerun_requested', 'harness.retry_scheduled', 'harness.skipped',
    'key.limited',
    'queue.defined', 'queue.paused', 'queue.removed', 'queue.resumed',
    'retention.set',
    'schedule.defined', 'schedule.failed', 'schedule.paused', 'schedule.removed',
    'schedule.resumed', 'schedule.run_manually', 'schedule.skipped',
    'task.blocked', 'task.cancelled', 'task.claimed', 'task.completed', 'task.dead_lettered',
    'task.deferred', 'task.failed', 'task.forked', 'task.hold_released', 'task.parked',
    'task.prioritised', 'task.readied', 'task.released', 'task.resumed', 'task.retried',
    'task.started', 'task.suspended', 'task.validation_started',
    'token.created', 'token.revoked',
    'trigger.defined', 'trigger.failed', 'trigger.fired', 'trigger.paused', 'trigger.refused',
    'trigger.removed', 'trigger.resumed',
    'type.defined', 'type.failure_rate_exceeded', 'type.paused', 'type.resumed',
    'wait.answered', 'wait.escalated', 'wait.expired', 'wait.opened',
    'webhook.added', 'webhook.changed', 'webhook.failed', 'webhook.paused', 'webhook.received',
    'webhook.recovered', 'webhook.removed', 'webhook.resumed', 'webhook.rotated',
    'work.blocked', 'work.cancelled', 'work.completed', 'work.dispatched', 'work.failed',
    'work.queued', 'work.stalled', 'work.started', 'work.updated'
  ]
$$;

-- builtin_kinds_like: return the built-in kinds with the same first word as a name; empty if the
-- name is not reserved.
create or replace function treadle.builtin_kinds_like(p_name text)
returns text[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select own.kind
    from unnest(treadle.builtin_event_kinds()) as own (kind)
    where starts_with(p_name, split_part(own.kind, '.', 1) || '.')
  )
$$;

-- check_kinds: reject event kinds that can never occur.
--
-- With p_wildcards, a trailing * matches any ending; otherwise * is rejected.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_kinds(
  p_kinds     text[],
  p_wildcards boolean,
  p_argument  text
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong  text;
  v_beside text[];
begin
  select kinds.pattern, beside.kinds
  into v_wrong, v_beside
  from unnest(p_kinds) as kinds (pattern)
  cross join lateral treadle.builtin_kinds_like(kinds.pattern) as beside (kinds)
  where
    case
      when right(kinds.pattern, 1) <> '*'
        then cardinality(beside.kinds) > 0 and kinds.pattern <> all (beside.kinds)
      when p_wildcards
        then cardinality(beside.kinds) > 0 and not exists (
          select from unnest(beside.kinds) as own (kind)
          where starts_with(own.kind, left(kinds.pattern, -1))
        )
      else true
    end
  limit 1;
  if found then
    perform treadle.raise_error(
      format('no event has the kind %s', left(quote_literal(v_wrong), 100)),
      jsonb_build_object('argument', p_argument, 'kind', v_wrong),
      case
        when v_beside = '{}' then 'Name one kind; * is not supported here.'
        else format('Kinds: %s.', array_to_string(v_beside, ', '))
      end
    );
  end if;
end;
$$;
