-- edit_spec: the arguments of a task as a person wants them for its next round.
--
-- spec replaces arguments as a whole. set changes one value each, by its path: a.b.c, or items.0
-- for one of a list; objects on the way are made. unset takes away what it names.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.edit_spec(p_spec jsonb, p_changes jsonb)
returns jsonb
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_spec jsonb := p_spec;
  v_edit record;
  v_kind text;
begin
  if jsonb_typeof(coalesce(p_changes -> 'spec', '{}')) <> 'object'
    or jsonb_typeof(coalesce(p_changes -> 'set', '{}')) <> 'object'
    or jsonb_path_exists(coalesce(p_changes -> 'unset', '[]'), 'strict $ ? (@.type() != "array")')
    or jsonb_path_exists(p_changes, '$.unset[*] ? (@.type() != "string")') then
    perform treadle.refuse(
      'spec and set must be json objects, unset a list of paths',
      jsonb_build_object('argument', 'changes'),
      'For example {"set": {"options.depth": 2}, "unset": ["url"]}.'
    );
  end if;

  v_spec := v_spec || coalesce(p_changes -> 'spec', '{}');
  for v_edit in
    select regexp_split_to_array(given.key, '\.') as path, given.value
    from jsonb_each(coalesce(p_changes -> 'set', '{}')) as given
    union all
    select regexp_split_to_array(gone.path, '\.'), null
    from jsonb_array_elements_text(coalesce(p_changes -> 'unset', '[]')) as gone (path)
  loop
    for v_at in 1..cardinality(v_edit.path) loop
      v_kind := jsonb_typeof(v_spec #> v_edit.path[:v_at - 1]);
      if v_edit.path[v_at] = '' or v_kind not in ('object', 'array') or (
        v_kind = 'array'
        and (v_edit.path[v_at] !~ '^[0-9]{1,9}$' or v_spec #> v_edit.path[:v_at] is null)
      ) then
        perform treadle.refuse(
          format(
            'there is no place %s in the spec',
            treadle.excerpt_name(array_to_string(v_edit.path, '.'))
          ),
          jsonb_build_object('argument', 'set'),
          'Name what is there, or what can be added to an object: a.b.c, or items.0 of a list.'
        );
      end if;
      if v_kind is null and v_edit.value is not null then
        v_spec := jsonb_set(v_spec, v_edit.path[:v_at - 1], '{}');
      end if;
    end loop;
    v_spec := case
      when v_edit.value is null then v_spec #- v_edit.path
      else jsonb_set(v_spec, v_edit.path, v_edit.value)
    end;
  end loop;
  return v_spec;
end;
$$;

comment on function treadle.edit_spec(jsonb, jsonb) is
'Internal: applies spec, set and unset of a change to the arguments of a task.';

revoke all on function treadle.edit_spec(jsonb, jsonb) from public;
