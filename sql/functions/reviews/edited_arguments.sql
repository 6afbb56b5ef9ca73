-- edited_arguments: the arguments of a task that a change touches.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing: edit_spec has checked the change.

create or replace function treadle.edited_arguments(p_changes jsonb)
returns text[]
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select
    array(
      select jsonb_object_keys(coalesce(p_changes -> 'spec', '{}'))
      union
      select split_part(jsonb_object_keys(coalesce(p_changes -> 'set', '{}')), '.', 1)
      union
      select split_part(jsonb_array_elements_text(coalesce(p_changes -> 'unset', '[]')), '.', 1)
    )
$$;

comment on function treadle.edited_arguments(jsonb) is
'Internal: names of arguments that spec, set and unset of a change replace.';

revoke all on function treadle.edited_arguments(jsonb) from public;
