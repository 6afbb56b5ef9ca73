-- complete_harness_task: store the decision of an agent and complete its task.
--
-- A repeated call changes nothing and says already; stale means that the claim was superseded.
-- p_allow_secrets: store the decision even if it seems to contain a credential.
--
-- Concurrency: as complete_tasks.
-- Lock order:  tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR111 secret refused.

create or replace function treadle.complete_harness_task(
  p_id        uuid,
  p_token     uuid,
  p_decision  jsonb,
  p_allow_secrets   boolean default false
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(p_decision) is distinct from 'object' then
    perform treadle.raise_error(
      'the decision must be a JSON object', jsonb_build_object('argument', 'decision')
    );
  end if;
  perform treadle.reject_secret(p_decision, 'decision') where p_allow_secrets is not true;
  return (
    select ended.verdict
    from treadle.complete_tasks(array[p_id], array[p_token], array[p_decision]) as ended
  );
end;
$$;

comment on function treadle.complete_harness_task(uuid, uuid, jsonb, boolean) is
'Complete a harness task with the decision of its agent; returns completed, already or stale.';

grant execute on function treadle.complete_harness_task(uuid, uuid, jsonb, boolean) to
treadle_worker;
