-- event_kinds: the list of built-in event kinds, and checks of kinds.

-- builtin_event_kinds: return all kinds of events that treadle itself emits.
--
-- Applications cannot emit these, or other kinds with the same first word; see check_topic.
create or replace function treadle.builtin_event_kinds()
returns text[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select array[
    'agent.active', 'agent.added', 'agent.draining', 'agent.offline', 'agent.removed',
    'agent.silent',
    'breaker.closed', 'breaker.half_open', 'breaker.opened',
    'budget.exhausted', 'budget.removed', 'budget.set', 'budget.warned',
    'dag.cancelled', 'dag.completed', 'dag.failed', 'dag.progress', 'dag.reopened', 'dag.started',
    'dead_letter.escalated',
    'gate.closed', 'gate.defined', 'gate.opened',
    'harness.failed', 'harness.interrupted', 'harness.nudges_allowed', 'harness.nudges_forbidden',
    'harness.rerun', 'harness.skipped', 'harness.waiting',
    'key.limited',
    'queue.defined', 'queue.paused', 'queue.resumed',
    'retention.set',
    'schedule.defined', 'schedule.failed', 'schedule.paused', 'schedule.removed',
    'schedule.resumed', 'schedule.run', 'schedule.skipped',
    'task.blocked', 'task.cancel', 'task.cancelled', 'task.claimed', 'task.completed',
    'task.dead_lettered', 'task.failed', 'task.forked', 'task.modify_and_retry', 'task.parked',
    'task.pending', 'task.ready', 'task.released', 'task.resumed', 'task.retry', 'task.started',
    'task.suspended', 'task.unheld', 'task.validating',
    'token.created', 'token.revoked',
    'trigger.defined', 'trigger.failed', 'trigger.fired', 'trigger.paused', 'trigger.refused',
    'trigger.removed', 'trigger.resumed',
    'type.defined', 'type.failing', 'type.paused', 'type.resumed',
    'wait.answered', 'wait.escalated', 'wait.expired', 'wait.opened',
    'webhook.added', 'webhook.changed', 'webhook.failing', 'webhook.paused', 'webhook.received',
    'webhook.recovered', 'webhook.removed', 'webhook.resumed', 'webhook.rotated',
    'work.blocked', 'work.cancelled', 'work.completed', 'work.dispatched', 'work.failed',
    'work.in_progress', 'work.queued', 'work.stale', 'work.updated'
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
-- With p_endings, a trailing * matches any ending; otherwise * is rejected.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_kinds(
  p_kinds     text[],
  p_endings   boolean,
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
      when p_endings
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
