-- dead_letter_log: every decision about a dead letter, also where the task is gone.

create view treadle.dead_letter_log as
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

comment on view treadle.dead_letter_log is
'Who decided what about which dead letter, when and why; nothing is ever removed.';

grant select on treadle.dead_letter_log to treadle_observer, treadle_operator;
