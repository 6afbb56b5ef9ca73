-- error_fingerprint: a short name for errors of one kind.
--
-- The class is in it, so that all of a group failed in the same way.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.error_fingerprint(p_class text, p_about text)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select left(md5(coalesce(p_class, '') || e'\n' || coalesce(p_about, '')), 12)
$$;

comment on function treadle.error_fingerprint(text, text) is
'Internal: the group of a failure, from its class and what error_about leaves of its error.';

revoke all on function treadle.error_fingerprint(text, text) from public;
