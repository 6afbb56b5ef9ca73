-- verdicts: return the state of the claims that a call names: held, lost, ended or cancelled.

-- claim_verdicts: return whether each claim is still valid: ok, lost, or cancelled.
create or replace function treadle.claim_verdicts(p_ids uuid[], p_tokens uuid[])
returns table (id uuid, verdict text)
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  select
    claim.id,
    case
      when tasks.claim_token = claim.token then 'ok'
      when tasks.status = 'cancelled' and tasks.last_token = claim.token then 'cancelled'
      else 'lost'
    end
  from unnest(p_ids, p_tokens) with ordinality as claim (id, token, at)
  left join treadle.tasks on claim.id = tasks.id
  order by claim.at
$$;

-- end_verdicts: return the result for each claim that was to end: done now, already done, or stale.
--
-- already means that the same result was stored before. A result that came after a cancellation or
-- a dead letter was not stored, so it is stale.
create or replace function treadle.end_verdicts(
  p_ids     uuid[],
  p_tokens  uuid[],
  p_done    uuid[],
  p_verdict text
)
returns table (id uuid, verdict text)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  if cardinality(p_done) = cardinality(p_ids) then
    return query select claim.id, p_verdict from unnest(p_ids) as claim (id);
    return;
  end if;

  return query
  select
    claim.id,
    case
      when tasks.last_token = claim.token and claim.id = any (p_done) then p_verdict
      when
        tasks.last_token = claim.token
        and (tasks.status = 'completed') = coalesce(p_verdict = 'completed', false)
        then 'already'
      else 'stale'
    end
  from unnest(p_ids, p_tokens) with ordinality as claim (id, token, at)
  left join treadle.tasks on claim.id = tasks.id
  order by claim.at;
end;
$$;

-- raise_if_lost: raise an error for a superseded claim.
--
-- Raises:      TR101 claim lost.
create or replace function treadle.raise_if_lost(p_id uuid, p_verdict text)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_verdict in ('stale', 'lost', 'cancelled') then
    perform treadle.raise_error(
      format('the claim on task %s is no longer valid', p_id),
      jsonb_build_object('task_id', p_id),
      'Discard the result: another agent has the task, or it was cancelled or has ended.',
      'TR101'
    );
  end if;
  return p_verdict;
end;
$$;

-- agent_of: return the agent whose claim had this token, if that claim has ended.
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
