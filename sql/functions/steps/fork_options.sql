-- fork_options: the options of a task as enqueue takes them, changed where asked.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.fork_options(
  p_task     treadle.tasks,
  p_changes  jsonb,
  p_actor    text
)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_changes constant text[] := array[
    'spec', 'queue', 'type', 'priority', 'max_attempts', 'timeout_s', 'ageing_rate',
    'capabilities', 'assigned_agent', 'retry', 'title', 'max_cost_usd'
  ];
begin
  perform treadle.check_settings(p_changes, c_changes);
  if p_changes ? 'spec' and jsonb_typeof(p_changes -> 'spec') <> 'object' then
    perform treadle.refuse(
      format('the spec must be a json object, not %s', jsonb_typeof(p_changes -> 'spec')),
      jsonb_build_object('argument', 'spec'),
      'Pass the arguments that change by name: {"prompt": "..."}.'
    );
  end if;

  return treadle.own_options(p_task)
  || jsonb_build_object(
    -- Every round that a person gave it has added to it.
    'max_attempts', least(p_task.max_attempts, 1000),
    'created_by', p_actor
  )
  || (p_changes - 'spec');
end;
$$;

comment on function treadle.fork_options(treadle.tasks, jsonb, text) is
'Internal: the options with which a fork of a task is enqueued.';

revoke all on function treadle.fork_options(treadle.tasks, jsonb, text) from public;
