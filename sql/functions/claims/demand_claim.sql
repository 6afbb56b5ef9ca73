-- demand_claim: turn a verdict of a superseded claim into an error.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR101 claim lost.

create or replace function treadle.demand_claim(p_id uuid, p_verdict text)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_verdict in ('stale', 'lost', 'cancelled') then
    perform treadle.refuse(
      format('the claim on task %s no longer holds', p_id),
      jsonb_build_object('task_id', p_id),
      'Drop the result: the task was taken over, cancelled or has ended.',
      'TR101'
    );
  end if;
  return p_verdict;
end;
$$;

comment on function treadle.demand_claim(uuid, text) is
'Internal: raises for a claim that was superseded.';

revoke all on function treadle.demand_claim(uuid, text) from public;
