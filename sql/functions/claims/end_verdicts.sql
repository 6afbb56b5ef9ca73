-- end_verdicts: what became of each claim that was to end: done now, already done, or stale.
--
-- Already means that the same answer was taken before: a result that came after a cancellation or
-- a dead letter was not stored, so it is stale.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.end_verdicts(uuid[], uuid[], uuid[], text) is
'Internal: tells a repeated ending from a superseded one.';

revoke all on function treadle.end_verdicts(uuid[], uuid[], uuid[], text) from public;
