-- claim_verdicts: whether each claim still holds: ok, lost, or cancelled.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.claim_verdicts(uuid[], uuid[]) is
'Internal: compares claims with the rows.';

revoke all on function treadle.claim_verdicts(uuid[], uuid[]) from public;
