-- claim_harness: give an agent its oldest pending task.
--
-- Repeating a call with its token returns the same task, and says already: an answer that was lost
-- is no loss. A task that was taken back since is not given to its old token again.
--
-- Concurrency: as claim_tasks: of two that claim at once, one gets the task.
-- Lock order:  agents, tasks (never waits for a task).
-- Raises:      TR001 invalid argument, TR101 claim lost.

create or replace function treadle.claim_harness(
  p_agent_url  text,
  p_token      uuid,
  p_timeout_s  double precision default 300
)
returns table (
  id uuid, agent_url text, payload jsonb, retry_count integer, max_retries integer,
  created_at timestamptz, claim_until timestamptz, already boolean
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_url     text := treadle.agent_url_of(p_agent_url);
  v_already boolean := exists (
    select from treadle.tasks
    where
      tasks.agent_id = v_url and tasks.claim_token = p_token
      and tasks.status in ('claimed', 'running', 'validating')
  );
begin
  if p_token is null then
    perform treadle.refuse(
      'a claim needs a token', jsonb_build_object('argument', 'claim_token')
    );
  end if;
  perform treadle.make_harness();
  perform treadle.harness_agent(v_url, p_timeout_s);
  return query
  select
    claimed.id, v_url, claimed.spec, claimed.attempt - 1, claimed.max_attempts - 1,
    claimed.created_at, claimed.lease_until, v_already
  from treadle.claim_tasks(v_url, '{harness}', null, 1, true, p_token) as claimed;
  if not found then
    perform treadle.demand_fresh(v_url, p_token);
  end if;
end;
$$;

comment on function treadle.claim_harness(text, uuid, double precision) is
'Claim the oldest pending task of an agent of the harness; nothing when there is none.';

revoke all on function treadle.claim_harness(text, uuid, double precision) from public;
grant execute on function treadle.claim_harness(text, uuid, double precision) to treadle_worker;
