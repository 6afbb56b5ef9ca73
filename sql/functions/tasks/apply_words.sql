-- apply_words: options of a new task that are said in other words than its columns.
--
-- urgency (1 to 10) and tier stand for a priority, project for the id of the one with that name,
-- and concurrency_limit belongs to the key.
--
-- Concurrency: see limit_key.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR208 unknown project.

create or replace function treadle.apply_words(p_task treadle.tasks, p_options jsonb)
returns treadle.tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task treadle.tasks := p_task;
  v_name text;
begin
  if (p_options ? 'priority')::integer + (p_options ? 'urgency')::integer
    + (p_options ? 'tier')::integer > 1 then
    perform treadle.refuse(
      'priority, urgency and tier say the same thing',
      jsonb_build_object('argument', 'priority'), 'Give one of them.'
    );
  end if;
  v_name := 'urgency';
  if p_options ? 'urgency' then
    v_task.priority := treadle.priority_of_urgency((p_options ->> 'urgency')::integer);
  elsif p_options ? 'tier' then
    v_task.priority := treadle.priority_of_tier(p_options ->> 'tier');
  end if;
  if p_options ? 'project' then
    v_task.project_id := treadle.project_named(p_options ->> 'project');
  end if;
  v_name := 'concurrency_limit';
  if p_options ? 'concurrency_limit' then
    perform treadle.limit_key(
      v_task.concurrency_key, (p_options ->> 'concurrency_limit')::integer
    );
  end if;
  return v_task;
exception
  when data_exception then
    perform treadle.refuse(
      format('%s: %s', v_name, sqlerrm), jsonb_build_object('argument', v_name),
      'Give a whole number.'
    );
end;
$$;

comment on function treadle.apply_words(treadle.tasks, jsonb) is
'Internal: reads the options urgency, tier, project and concurrency_limit.';

revoke all on function treadle.apply_words(treadle.tasks, jsonb) from public;
