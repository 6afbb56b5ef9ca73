-- work_states: the states of tasks that have this name in the work API.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.work_states(p_status text)
returns text[]
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_states constant text[] := array[
    'created', 'pending', 'ready', 'claimed', 'running', 'validating', 'blocked', 'retrying',
    'completed', 'dead_lettered', 'cancelled'
  ];
  v_found text[] := array(
    select states.name from unnest(c_states) as states (name)
    where treadle.work_status(states.name) = p_status
  );
begin
  if v_found = '{}' then
    perform treadle.refuse(
      format('there is no status %L', left(p_status, 60)),
      jsonb_build_object('argument', 'status'),
      'See the view treadle.work_transitions.'
    );
  end if;
  return v_found;
end;
$$;

comment on function treadle.work_states(text) is
'Internal: the other direction of work_status.';

revoke all on function treadle.work_states(text) from public;
