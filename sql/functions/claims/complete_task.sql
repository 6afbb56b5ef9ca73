-- complete_task: store the result of one task; an error when the claim was superseded.
--
-- In one transaction with the caller's own writes, those happen exactly once: roll back when it
-- says already, for then an earlier commit had them.
--
-- Concurrency: see complete_tasks.
-- Lock order:  tasks.
-- Raises:      TR101 claim lost.

create or replace function treadle.complete_task(
  p_id      uuid,
  p_token   uuid,
  p_output  jsonb default null
)
returns text
language plpgsql
volatile
security definer
set search_path = ''
as $$
declare
  v_verdict text;
begin
  select ended.verdict
  into v_verdict
  from treadle.complete_tasks(array[p_id], array[p_token], array[p_output]) as ended;
  return treadle.demand_claim(p_id, v_verdict);
end;
$$;

comment on function treadle.complete_task(uuid, uuid, jsonb) is
'Complete one task; raises when another claim has taken over.';

revoke all on function treadle.complete_task(uuid, uuid, jsonb) from public;
grant execute on function treadle.complete_task(uuid, uuid, jsonb) to treadle_worker;
