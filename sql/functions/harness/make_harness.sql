-- make_harness: make the queue and the type of the harness where they are missing.
--
-- Their settings belong to the operator from then on. A claim that ran out is pending again at
-- once; who fails is one agent, and its breaker would hold up the others.
--
-- Concurrency: writes nothing when both are there.
-- Lock order:  queues, task_types.
-- Raises:      nothing.

create or replace function treadle.make_harness()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if treadle.are_names('harness', 'harness') then
    return;
  end if;
  if not exists (select from treadle.queues where queues.name = 'harness') then
    perform treadle.define_queue(
      'harness',
      '{"max_attempts": 4, "retry": {"strategy": "immediate", "poison": false}}'
    );
  end if;
  if not exists (select from treadle.task_types where task_types.name = 'harness') then
    perform treadle.define_type(
      'harness',
      '{"description": "A task for an agent of the harness", "breaker": {"threshold": 0}}'
    );
  end if;
end;
$$;

comment on function treadle.make_harness() is
'Internal: makes the queue and the type named harness on first use.';

revoke all on function treadle.make_harness() from public;
