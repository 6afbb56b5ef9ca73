-- claim_owners: return the agent, queue and project of each claim, for servers that act for many
-- agents.
--
-- A claim is a task id with a token. A claim that has ended or was superseded still belongs to its
-- agent. The agent is null if no claim had the token. Tasks that do not exist are left out.
--
-- Raises:      TR001 invalid argument.

create or replace function treadle.claim_owners(p_ids uuid[], p_tokens uuid[])
returns table (id uuid, queue text, project_id uuid, agent_id text)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  perform treadle.check_array_lengths(p_ids, p_tokens);
  return query
  select
    tasks.id, tasks.queue, tasks.project_id,
    case
      when tasks.claim_token = claim.token then tasks.agent_id
      when tasks.last_token = claim.token and tasks.status = 'completed' then tasks.completed_by
      else treadle.agent_of(tasks.id, claim.token)
    end
  from unnest(p_ids, p_tokens) with ordinality as claim (id, token, at)
  inner join treadle.tasks on claim.id = tasks.id
  order by claim.at;
end;
$$;

comment on function treadle.claim_owners(uuid[], uuid[]) is
'The queue and project of each task, and the agent whose claim had the token.';

grant execute on function treadle.claim_owners(uuid[], uuid[]) to treadle_worker;
