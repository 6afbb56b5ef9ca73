-- content_key: an idempotency key made from what is to be done.
--
-- jsonb has one order of keys, so equal content gives an equal key.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.content_key(p_type text, p_spec jsonb)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select 'content:' || encode(
    sha256(convert_to(coalesce(p_type, '') || ' ' || coalesce(p_spec, '{}')::text, 'UTF8')), 'hex'
  )
$$;

comment on function treadle.content_key(text, jsonb) is
'The key that enqueue_task makes from type and spec with p_dedupe.';

revoke all on function treadle.content_key(text, jsonb) from public;
grant execute on function treadle.content_key(text, jsonb) to treadle_producer, treadle_worker;
