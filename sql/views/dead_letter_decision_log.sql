-- dead_letter_decision_log: every decision about a dead letter, even if the task has been deleted.

create view treadle.dead_letter_decision_log as
select
  dead_letter_decisions.id,
  dead_letter_decisions.at,
  dead_letter_decisions.decision,
  dead_letter_decisions.actor,
  dead_letter_decisions.note,
  dead_letter_decisions.changes,
  dead_letter_decisions.delay_s,
  dead_letter_decisions.escalated_to,
  dead_letter_decisions.letter_id,
  dead_letter_decisions.task_id,
  dead_letter_decisions.queue,
  dead_letter_decisions.type,
  dead_letter_decisions.class,
  dead_letter_decisions.fingerprint,
  dead_letter_decisions.about
from treadle.dead_letter_decisions;

comment on view treadle.dead_letter_decision_log is
'Decisions about dead letters, each with its actor, time and note. Rows are never removed.';
comment on column treadle.dead_letter_decision_log.id is 'Id of the decision.';
comment on column treadle.dead_letter_decision_log.at is 'When it was decided.';
comment on column treadle.dead_letter_decision_log.decision is
'retry, modify_and_retry, cancel or escalate.';
comment on column treadle.dead_letter_decision_log.actor is 'Actor that decided.';
comment on column treadle.dead_letter_decision_log.note is 'Note of the actor that decided.';
comment on column treadle.dead_letter_decision_log.changes is 'Changes for modify_and_retry.';
comment on column treadle.dead_letter_decision_log.delay_s is 'Delay of the retry in seconds.';
comment on column treadle.dead_letter_decision_log.escalated_to is
'Person that the dead letter was assigned to, for escalate.';
comment on column treadle.dead_letter_decision_log.letter_id is 'Id of the dead letter.';
comment on column treadle.dead_letter_decision_log.task_id is 'Id of the task.';
comment on column treadle.dead_letter_decision_log.queue is 'Name of its queue.';
comment on column treadle.dead_letter_decision_log.type is 'Name of its task type.';
comment on column treadle.dead_letter_decision_log.class is 'Failure class.';
comment on column treadle.dead_letter_decision_log.fingerprint is
'Identifier shared by errors of the same kind.';
comment on column treadle.dead_letter_decision_log.about is
'First line of the error with variable parts replaced.';

grant select on treadle.dead_letter_decision_log to treadle_observer, treadle_operator;
