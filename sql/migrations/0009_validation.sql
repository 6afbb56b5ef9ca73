-- 0009_validation: outputs are checked before they count, and work comes with a report.

alter table treadle.task_types
add column validation jsonb,
add column report text,
add column models text[],
add column fallback_models text[],
add constraint task_types_report_check check (report in ('required', 'optional'));

comment on column treadle.task_types.validation is
'The validators that an output has to pass, in order; a task may name others.';
comment on column treadle.task_types.report is
'required: a task is not completed without a decision report.';
comment on column treadle.task_types.models is 'Models to use, the best first.';
comment on column treadle.task_types.fallback_models is
'Models to use from the third attempt on.';

-- Its own; what is empty comes from the type when the task is claimed.
alter table treadle.tasks
add column report text,
add column models text[],
add column fallback_models text[],
add column attempt_notes jsonb;

comment on column treadle.tasks.validation is
'Validators of its own; empty: those of its type.';
comment on column treadle.tasks.report is
'required or optional; empty: as its type says.';
comment on column treadle.tasks.decision_report is
'What was decided and why, as the agent that completed it tells.';
comment on column treadle.tasks.attempt_notes is
'What attempts have left for later ones: [{"token", "attempt", "at", "note"}].';

alter table treadle.attempts add column feedback jsonb;

comment on column treadle.attempts.feedback is
'What validators had against its output, as a list of texts.';

-- They have more parameters, or more columns in their answer.
drop function if exists treadle.claim_tasks(
  text, text[], text[], integer, boolean, uuid, boolean
);
drop function if exists treadle.complete_task(uuid, uuid, jsonb);
drop function if exists treadle.complete_tasks(uuid[], uuid[], jsonb[], integer[]);
drop function if exists treadle.fail_task(
  uuid, uuid, text, text, text, double precision, text
);
drop function if exists treadle.fail_tasks(
  uuid[], uuid[], text[], text[], text[], double precision[], text[]
);

alter type treadle.ended_attempt add attribute model text;
