-- check_kinds: refuse kinds of events that never happen: treadle alone could write them.
--
-- With p_endings a * stands for any ending; without, for nothing.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_kinds(
  p_kinds     text[],
  p_endings   boolean,
  p_argument  text
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong  text;
  v_beside text[];
begin
  select kinds.pattern, beside.kinds
  into v_wrong, v_beside
  from unnest(p_kinds) as kinds (pattern)
  cross join lateral treadle.kinds_beside(kinds.pattern) as beside (kinds)
  where
    case
      when right(kinds.pattern, 1) <> '*'
        then cardinality(beside.kinds) > 0 and kinds.pattern <> all (beside.kinds)
      when p_endings
        then cardinality(beside.kinds) > 0 and not exists (
          select from unnest(beside.kinds) as own (kind)
          where starts_with(own.kind, left(kinds.pattern, -1))
        )
      else true
    end
  limit 1;
  if found then
    perform treadle.refuse(
      format('no event is of the kind %s', left(quote_literal(v_wrong), 100)),
      jsonb_build_object('argument', p_argument, 'kind', v_wrong),
      case
        when v_beside = '{}' then 'Name one kind: here * does not stand for any ending.'
        else format('There are %s.', array_to_string(v_beside, ', '))
      end
    );
  end if;
end;
$$;

comment on function treadle.check_kinds(text[], boolean, text) is
'Internal: refuses kinds of events that nobody writes.';

revoke all on function treadle.check_kinds(text[], boolean, text) from public;
