-- refuse: raise one of treadle's errors with its message, detail and hint.
--
-- These reach clients and the log of the server, so what looks like a credential is masked in them.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      the code given, TR001 invalid argument by default.

create or replace function treadle.refuse(
  p_message  text,
  p_detail   jsonb default '{}',
  p_hint     text default '',
  p_code     text default 'TR001'
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception using
    errcode = p_code,
    message = treadle.mask_text(p_message),
    detail = treadle.mask_json(p_detail)::text,
    hint = coalesce(treadle.mask_text(p_hint), '');
end;
$$;

comment on function treadle.refuse(text, jsonb, text, text) is
'Internal: raises an error with a sentence, a json detail and the next step.';

revoke all on function treadle.refuse(text, jsonb, text, text) from public;
