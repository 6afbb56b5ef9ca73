-- own_kinds: the kinds of events that treadle itself writes: the one list of them.
--
-- Nobody else can emit these, or others that begin with the same noun; see check_topic.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.own_kinds()
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
    'trigger.by_hand', 'trigger.failed', 'trigger.paused', 'trigger.refused', 'trigger.removed',
    'trigger.resumed', 'trigger.set',
    'type.defined', 'type.failing', 'type.paused', 'type.resumed',
    'wait.answered', 'wait.escalated', 'wait.expired', 'wait.opened',
    'webhook.added', 'webhook.changed', 'webhook.failing', 'webhook.paused', 'webhook.received',
    'webhook.recovered', 'webhook.removed', 'webhook.resumed', 'webhook.rotated',
    'work.blocked', 'work.cancelled', 'work.completed', 'work.dispatched', 'work.failed',
    'work.in_progress', 'work.queued', 'work.stale', 'work.updated'
  ]
$$;

comment on function treadle.own_kinds() is
'Internal: the kinds of events that treadle itself writes.';

revoke all on function treadle.own_kinds() from public;
