-- refuse_secret: refuse a document that holds what looks like a credential.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR111 secret refused.

create or replace function treadle.refuse_secret(p_value jsonb, p_name text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path text := treadle.looks_secret(p_value);
begin
  if v_path is not null then
    perform treadle.refuse(
      format('the %s holds what looks like a credential at %s: it is not stored', p_name, v_path),
      jsonb_build_object('argument', p_name, 'path', v_path),
      'Leave it out, or name where it is kept, such as ${GITHUB_TOKEN}.',
      'TR111'
    );
  end if;
end;
$$;

comment on function treadle.refuse_secret(jsonb, text) is
'Internal: raises for a document with a credential in it.';

revoke all on function treadle.refuse_secret(jsonb, text) from public;
