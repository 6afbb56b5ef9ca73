-- forget_slowdowns: a gate behind which a task succeeded after it had opened begins anew.
--
-- Concurrency: called only while some gate counts slow-downs.
-- Lock order:  gates by key, after tasks, breakers and budgets.
-- Raises:      nothing.

create or replace function treadle.forget_slowdowns(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_keys text[] := array(
    select distinct gates.key
    from treadle.tasks
    inner join treadle.lanes on tasks.lane_id = lanes.id
    inner join treadle.gates on gates.key = any (lanes.gates)
    where
      tasks.id = any (p_ids) and gates.slowdowns > 0 and tasks.claimed_at >= gates.slowed_until
  );
begin
  if v_keys <> '{}' then
    perform gates.key from treadle.gates
    where gates.key = any (v_keys)
    order by gates.key
    for no key update;
    update treadle.gates
    set slowdowns = 0
    where gates.key = any (v_keys) and gates.slowed_until <= treadle.clock();
  end if;
end;
$$;

comment on function treadle.forget_slowdowns(uuid[]) is
'Internal: forgets how often gates were closed in a row.';

revoke all on function treadle.forget_slowdowns(uuid[]) from public;
