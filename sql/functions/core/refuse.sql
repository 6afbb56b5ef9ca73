-- refuse: raise one of treadle's errors with its message, detail and hint.
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
set search_path = ''
as $$
begin
  raise exception using
    errcode = p_code,
    message = p_message,
    detail = p_detail::text,
    hint = coalesce(p_hint, '');
end;
$$;

comment on function treadle.refuse(text, jsonb, text, text) is
'Internal: raises an error with a sentence, a json detail and the next step.';

revoke all on function treadle.refuse(text, jsonb, text, text) from public;
