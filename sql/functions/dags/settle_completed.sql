-- settle_completed: what follows for others when tasks were completed.
--
-- Concurrency: the caller holds the tasks, and their dependents as far as it saw them.
-- Lock order:  tasks, dags, then the rest.
-- Raises:      nothing.

create or replace function treadle.settle_completed(
  p_ids      uuid[],
  p_dags     uuid[],
  p_durable  uuid[],
  p_counted  uuid[],
  p_now      timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_ids is null then
    return;
  end if;
  if exists (
    select from treadle.dependencies
    where dependencies.depends_on = any (p_ids) and dependencies.met_at is null
  ) then
    perform treadle.meet_edges(p_ids, 'completed', p_now);
  end if;
  if p_dags is not null then
    perform treadle.tally_dags(
      p_dags, null, array_fill('completed'::text, array[cardinality(p_dags)]), p_now
    );
  end if;
  perform treadle.tell_completed(p_ids, p_now);
  if p_durable is not null then
    perform treadle.close_waits(p_durable);
  end if;
  if exists (select from treadle.breakers) then
    perform treadle.note_success(p_ids, p_now);
  end if;
  if p_counted is not null then
    perform treadle.free_tasks(p_counted);
  end if;
  if exists (select from treadle.gates where gates.slowdowns > 0) then
    perform treadle.forget_slowdowns(p_ids);
  end if;
end;
$$;

comment on function treadle.settle_completed(uuid[], uuid[], uuid[], uuid[], timestamptz) is
'Internal: edges, DAGs, waits, breakers, slots and money of completed tasks.';

revoke all on function treadle.settle_completed(uuid[], uuid[], uuid[], uuid[], timestamptz)
from public;
