-- check_pairs: refuse ids and tokens that do not pair up.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_pairs(
  p_ids     uuid[],
  p_tokens  uuid[],
  p_name    text default 'tokens',
  p_length  integer default null
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_length integer := coalesce(p_length, cardinality(p_tokens));
begin
  if cardinality(p_ids) is distinct from v_length then
    perform treadle.refuse(
      format('%s ids but %s %s', coalesce(cardinality(p_ids), 0), coalesce(v_length, 0), p_name),
      jsonb_build_object('argument', p_name),
      case p_name
        when 'tokens' then 'Pass the claim token that came with each task.'
        else 'Pass one value for each id, in the same order.'
      end
    );
  end if;
end;
$$;

comment on function treadle.check_pairs(uuid[], uuid[], text, integer) is
'Internal: arrays that describe the same tasks have the same length.';

revoke all on function treadle.check_pairs(uuid[], uuid[], text, integer) from public;
