-- check_key: refuse a concurrency key or a limit that cannot be.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_key(p_key text, p_max integer, p_least integer)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_key is null then
    perform treadle.refuse(
      'a concurrency limit needs a concurrency key',
      jsonb_build_object('argument', 'concurrency_key'),
      'Give both, for example {"concurrency_key": "repo:web", "concurrency_limit": 2}.'
    );
  elsif octet_length(p_key) not between 1 and 200 then
    perform treadle.refuse(
      format('concurrency_key must have 1 to 200 bytes, not %s', octet_length(p_key)),
      jsonb_build_object('argument', 'concurrency_key'), 'Hash a long key.'
    );
  elsif p_max is null or p_max not between p_least and 1000000 then
    perform treadle.refuse(
      format('the limit of a concurrency key must be %s to 1000000, not %s', p_least, p_max),
      jsonb_build_object('argument', 'concurrency_limit'),
      'To hold all of its tasks back: select treadle.set_concurrency(key, 0).'
    );
  end if;
end;
$$;

comment on function treadle.check_key(text, integer, integer) is
'Internal: checks a concurrency key and its limit.';

revoke all on function treadle.check_key(text, integer, integer) from public;
