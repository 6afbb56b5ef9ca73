-- check_reports: check decision reports.
--
-- {"summary": text, "confidence": 0 to 1, "decisions": [{"decision": text, "reason": text, ...}]};
-- goal is a text; assumptions, evidence, risks and follow_ups are lists. Other keys are allowed.
--
-- Raises:      TR001 invalid argument, TR002 too large.

-- report_problem: return what is wrong with a decision report; null if it is valid or absent.
create or replace function treadle.report_problem(p_report jsonb)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_report is null then null
    when jsonb_typeof(p_report) <> 'object' then 'it must be a JSON object'
    when not p_report @? '$.summary ? (@ like_regex "[^[:space:]]")'
      then 'summary must be a text that says what was done'
    when not p_report @? '$.confidence ? (@ >= 0 && @ <= 1)'
      then 'confidence must be a number from 0 to 1'
    when p_report ? 'goal' and jsonb_typeof(p_report -> 'goal') not in ('string', 'null')
      then 'goal must be a text'
    when jsonb_typeof(coalesce(p_report -> 'decisions', '[]')) <> 'array'
      then 'decisions must be a list'
    when p_report @? '$.decisions[*] ? (@.type() <> "object" || !exists(
        @.decision ? (@ like_regex "[^[:space:]]")) || !exists(
        @.reason ? (@ like_regex "[^[:space:]]")))'
      then 'each entry of decisions needs a decision and a reason'
    else (
      select format('%s must be a list of texts', part.name)
      from unnest(array['assumptions', 'evidence', 'risks', 'follow_ups']) as part (name)
      where
        jsonb_typeof(coalesce(p_report -> part.name, '[]')) <> 'array'
        or jsonb_path_exists(p_report -> part.name, '$[*] ? (@.type() <> "string")')
      limit 1
    )
  end
$$;

create or replace function treadle.check_reports(p_ids uuid[], p_reports jsonb[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id      uuid;
  v_problem text;
begin
  perform treadle.check_array_lengths(p_ids, null, 'reports', cardinality(p_reports));
  perform treadle.check_document('decision_report', given.report, 262144)
  from unnest(p_reports) as given (report)
  where given.report is not null;

  select given.id, treadle.report_problem(given.report)
  into v_id, v_problem
  from unnest(p_ids, p_reports) as given (id, report)
  where treadle.report_problem(given.report) is not null
  limit 1;
  if found then
    perform treadle.raise_error(
      format('the decision report of task %s: %s', v_id, v_problem),
      jsonb_build_object('argument', 'decision_report', 'task_id', v_id, 'problem', v_problem),
      'For example {"summary": "Chose A over B", "confidence": 0.8, "decisions": '
      '[{"decision": "A", "reason": "half the cost", "options": ["A", "B"]}]}.'
    );
  end if;
end;
$$;
