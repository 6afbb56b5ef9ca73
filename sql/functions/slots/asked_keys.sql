-- asked_keys: concurrency keys or budgets for which somebody asked, the oldest request first.
--
-- After that one the others by name, round and round: many requests for one of them do not hide
-- the rest, and none is always the last.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.asked_keys(p_kind text, p_limit integer)
returns text[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_first text := (
    select admissions.key from treadle.admissions
    where admissions.kind = p_kind
    order by admissions.id
    limit 1
  );
  v_key   text := v_first;
  v_keys  text[] := '{}';
begin
  while v_key is not null and cardinality(v_keys) < p_limit loop
    v_keys := v_keys || v_key;
    v_key := coalesce(
      (
        select min(admissions.key) from treadle.admissions
        where admissions.kind = p_kind and admissions.key > v_key
      ),
      (
        select min(admissions.key) from treadle.admissions
        where admissions.kind = p_kind and admissions.key <= v_key
      )
    );
    exit when v_key = v_first or v_key = any (v_keys);
  end loop;
  return v_keys;
end;
$$;

comment on function treadle.asked_keys(text, integer) is
'Internal: what has requests in admissions, each once.';

revoke all on function treadle.asked_keys(text, integer) from public;
