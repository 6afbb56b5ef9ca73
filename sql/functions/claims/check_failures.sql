-- check_failures: refuse what is said of failed attempts when it does not pair up with them.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_failures(
  p_ids     uuid[],
  p_tokens  uuid[],
  p_names   text[],
  variadic p_lengths integer[]
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.check_pairs(p_ids, p_tokens);
  perform treadle.check_pairs(p_ids, null, given.name, given.length)
  from unnest(p_names, p_lengths) as given (name, length)
  where given.length is not null;
end;
$$;

comment on function treadle.check_failures(uuid[], uuid[], text[], integer[]) is
'Internal: one token for each id, and one of each thing that is said at all.';

revoke all on function treadle.check_failures(uuid[], uuid[], text[], integer[]) from public;
