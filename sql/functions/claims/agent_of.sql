-- agent_of: the agent whose claim of a task had this token, when that claim has ended.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.agent_of(p_task uuid, p_token uuid)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select attempts.agent_id
  from treadle.attempts
  where attempts.task_id = p_task and attempts.claim_token = p_token
$$;

comment on function treadle.agent_of(uuid, uuid) is
'Internal: whose an ended attempt was.';

revoke all on function treadle.agent_of(uuid, uuid) from public;
