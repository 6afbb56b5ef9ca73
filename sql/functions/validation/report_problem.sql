-- report_problem: what is wrong with a decision report; null when nothing is, or there is none.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.report_problem(p_report jsonb)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_report is null then null
    when jsonb_typeof(p_report) <> 'object' then 'it must be a json object'
    when not p_report @? '$.summary ? (@ like_regex "[^[:space:]]")'
      then 'summary must say in words what was done'
    when not p_report @? '$.confidence ? (@ >= 0 && @ <= 1)'
      then 'confidence must be a number from 0 to 1'
    when p_report ? 'goal' and jsonb_typeof(p_report -> 'goal') not in ('string', 'null')
      then 'goal must be a text'
    when jsonb_typeof(coalesce(p_report -> 'decisions', '[]')) <> 'array'
      then 'decisions must be a list'
    when p_report @? '$.decisions[*] ? (@.type() <> "object" || !exists(
        @.decision ? (@ like_regex "[^[:space:]]")) || !exists(
        @.reason ? (@ like_regex "[^[:space:]]")))'
      then 'each of the decisions needs a decision and a reason'
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

comment on function treadle.report_problem(jsonb) is
'Internal: a few words when a decision report is not in shape.';

revoke all on function treadle.report_problem(jsonb) from public;
