-- check_work: refuse changes of a work item that no item can have.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_work(p_changes jsonb, p_stale_s double precision)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_known constant text[] := array[
    'status', 'outcome', 'notes', 'assigned_agent', 'unless_updated_since'
  ];
begin
  perform treadle.check_settings(p_changes, c_known);
  if p_changes = '{}' or jsonb_path_exists(p_changes, '$.* ? (@.type() != "string")') then
    perform treadle.refuse(
      case p_changes
        when '{}' then 'nothing is to be changed' else 'what is to be changed must be texts'
      end,
      jsonb_build_object('argument', 'changes'), 'Fields: ' || array_to_string(c_known, ', ')
    );
  end if;
  if p_changes ->> 'status' not in (
    select work_transitions.to_status from treadle.work_transitions
  ) then
    perform treadle.refuse(
      format('there is no status %L', left(p_changes ->> 'status', 60)),
      jsonb_build_object('argument', 'status'),
      'See the view treadle.work_transitions.'
    );
  end if;
  perform treadle.check_work_text('assigned_agent', p_changes ->> 'assigned_agent', 200, false);
  if octet_length(p_changes ->> 'notes') > 20000 then
    perform treadle.check_work_text('notes', p_changes ->> 'notes', 20000, false);
  end if;
  if not coalesce(p_stale_s > 0 and p_stale_s <= 31536000, false) then
    perform treadle.refuse(
      'the time after which an item is stale must be above 0 and at most a year',
      jsonb_build_object('argument', 'stale_s')
    );
  end if;
end;
$$;

comment on function treadle.check_work(jsonb, double precision) is
'Internal: refuses fields, states and texts that are not of the work API.';

revoke all on function treadle.check_work(jsonb, double precision) from public;
