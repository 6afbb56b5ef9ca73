-- complete_task: store the result of one task; an error when the claim was superseded.
--
-- p_report is the decision report, which a type may require.
--
-- In one transaction with the caller's own writes, those happen exactly once: roll back when it
-- says already, for then an earlier commit had them.
--
-- Concurrency: see complete_tasks.
-- Lock order:  tasks.
-- Raises:      TR001 invalid argument, TR101 claim lost, TR107 report required.

create or replace function treadle.complete_task(
  p_id      uuid,
  p_token   uuid,
  p_output  jsonb default null,
  p_report  jsonb default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_verdict text;
begin
  select ended.verdict
  into v_verdict
  from treadle.complete_tasks(
    array[p_id], array[p_token], array[p_output],
    p_reports => case when p_report is not null then array[p_report] end
  ) as ended;
  if v_verdict = 'report_required' then
    perform treadle.refuse(
      format('task %s cannot be completed without a decision report', p_id),
      jsonb_build_object('task_id', p_id),
      'Say what was decided and why: p_report => {"summary": ..., "confidence": 0.8}.',
      'TR107'
    );
  end if;
  return treadle.demand_claim(p_id, v_verdict);
end;
$$;

comment on function treadle.complete_task(uuid, uuid, jsonb, jsonb) is
'Complete one task; raises when another claim has taken over.';

revoke all on function treadle.complete_task(uuid, uuid, jsonb, jsonb) from public;
grant execute on function treadle.complete_task(uuid, uuid, jsonb, jsonb) to treadle_worker;
