-- transitions: the state machine of a task, the one place where it is written down.

create view treadle.transitions as
select
  steps.from_status,
  steps.to_status,
  steps.by,
  steps.why
from (
  values
  (null, 'created', 'enqueue_task', 'held back'),
  (null, 'pending', 'enqueue_task', 'waits for its time'),
  (null, 'ready', 'enqueue_task', 'claimable at once'),
  ('created', 'ready', 'unhold_tasks', 'let go'),
  ('created', 'pending', 'unhold_tasks', 'let go, waits for its time'),
  ('pending', 'ready', 'promote_tasks', 'its time has come'),
  ('ready', 'claimed', 'claim_tasks', 'an agent has it'),
  ('ready', 'running', 'claim_tasks', 'claimed and started'),
  ('claimed', 'running', 'start_tasks', 'the handler runs'),
  ('claimed', 'completed', 'complete_tasks', 'done quickly'),
  ('running', 'completed', 'complete_tasks', 'done'),
  ('validating', 'completed', 'complete_tasks', 'output accepted'),
  ('ready', 'completed', 'complete_tasks', 'late, and nobody took over'),
  ('retrying', 'completed', 'complete_tasks', 'late, and nobody took over'),
  ('claimed', 'ready', 'release_tasks', 'given back'),
  ('running', 'ready', 'release_tasks', 'given back'),
  ('claimed', 'retrying', 'fail_tasks', 'failed'),
  ('running', 'retrying', 'fail_tasks', 'failed'),
  ('validating', 'retrying', 'fail_tasks', 'output refused'),
  ('claimed', 'ready', 'fail_tasks', 'retried at once'),
  ('running', 'ready', 'fail_tasks', 'retried at once'),
  ('validating', 'ready', 'fail_tasks', 'retried at once'),
  ('claimed', 'dead_lettered', 'fail_tasks', 'gave up'),
  ('running', 'dead_lettered', 'fail_tasks', 'gave up'),
  ('validating', 'dead_lettered', 'fail_tasks', 'gave up'),
  ('claimed', 'cancelled', 'fail_tasks', 'the handler said so'),
  ('running', 'cancelled', 'fail_tasks', 'the handler said so'),
  ('validating', 'cancelled', 'fail_tasks', 'the handler said so'),
  ('claimed', 'retrying', 'reap_claims', 'not started in time'),
  ('running', 'retrying', 'reap_claims', 'no heartbeat, or too long'),
  ('validating', 'retrying', 'reap_claims', 'no heartbeat, or too long'),
  ('claimed', 'ready', 'reap_claims', 'retried at once'),
  ('running', 'ready', 'reap_claims', 'retried at once'),
  ('validating', 'ready', 'reap_claims', 'retried at once'),
  ('claimed', 'dead_lettered', 'reap_claims', 'gave up'),
  ('running', 'dead_lettered', 'reap_claims', 'gave up'),
  ('validating', 'dead_lettered', 'reap_claims', 'gave up'),
  ('retrying', 'ready', 'promote_tasks', 'the delay is over'),
  ('retrying', 'ready', 'retry_task', 'now, not later'),
  ('dead_lettered', 'ready', 'retry_task', 'a person decided'),
  ('dead_lettered', 'cancelled', 'retry_task', 'a person decided'),
  ('cancelled', 'ready', 'retry_task', 'a person changed their mind'),
  ('created', 'cancelled', 'cancel_tasks', 'not wanted'),
  ('pending', 'cancelled', 'cancel_tasks', 'not wanted'),
  ('ready', 'cancelled', 'cancel_tasks', 'not wanted'),
  ('claimed', 'cancelled', 'cancel_tasks', 'not wanted'),
  ('running', 'cancelled', 'cancel_tasks', 'not wanted'),
  ('validating', 'cancelled', 'cancel_tasks', 'not wanted'),
  ('blocked', 'cancelled', 'cancel_tasks', 'not wanted'),
  ('retrying', 'cancelled', 'cancel_tasks', 'not wanted')
) as steps (from_status, to_status, by, why);

comment on view treadle.transitions is
'Every allowed change of state, the function that makes it, and why.';

grant select on treadle.transitions to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
