-- find_tasks: return the newest tasks that match a filter, for lists.
--
-- select id from treadle.find_tasks('{"queue": "mail", "status": "retrying"}', 50);
--
-- The filter has the same keys as that of cancel_tasks_where and retry_tasks_where; an empty one
-- matches every task.
--
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR203 unknown type.

create or replace function treadle.find_tasks(p_filter jsonb, p_limit integer default 50)
returns setof uuid
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_states constant text[] := array[
    'created', 'pending', 'ready', 'claimed', 'running', 'validating', 'blocked', 'retrying',
    'completed', 'dead_lettered', 'cancelled'
  ];
  v_states text[] := c_states;
begin
  if p_filter is distinct from '{}' then
    v_states := treadle.check_filter(p_filter, c_states, c_states);
  end if;
  return query
  select found.id
  from treadle.matching_tasks(p_filter, v_states, p_newest => p_limit) as found;
end;
$$;

comment on function treadle.find_tasks(jsonb, integer) is
'Return the newest tasks that match a filter with the keys of bulk operations.';

grant execute on function treadle.find_tasks(jsonb, integer) to treadle_observer, treadle_operator;
