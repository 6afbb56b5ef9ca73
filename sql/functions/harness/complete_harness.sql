-- complete_harness: store the decision of an agent.
--
-- Repeating a call changes nothing: it says already. p_secrets: store it also when it looks as if
-- a credential were in it.
--
-- Concurrency: as complete_tasks.
-- Lock order:  tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR101 claim lost, TR111 secret refused.

create or replace function treadle.complete_harness(
  p_id        uuid,
  p_token     uuid,
  p_decision  jsonb,
  p_secrets   boolean default false
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(p_decision) is distinct from 'object' then
    perform treadle.refuse(
      'the decision must be a json object', jsonb_build_object('argument', 'decision')
    );
  end if;
  perform treadle.refuse_secret(p_decision, 'decision') where p_secrets is not true;
  return treadle.complete_task(p_id, p_token, p_decision);
end;
$$;

comment on function treadle.complete_harness(uuid, uuid, jsonb, boolean) is
'Complete a task of the harness with the decision of its agent: completed, or already.';

grant execute on function treadle.complete_harness(uuid, uuid, jsonb, boolean) to treadle_worker;
