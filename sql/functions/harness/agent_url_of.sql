-- agent_url_of: the address of an agent as it is kept: without its last slash.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.agent_url_of(p_url text)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_url is null or octet_length(p_url) > 200
    or p_url !~ '^https?://[A-Za-z0-9._-]+(:[0-9]{1,5})?(/[^\s?#@\\]*)?$'
    and p_url !~ '^https?://\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?(/[^\s?#@\\]*)?$'
  then
    perform treadle.refuse(
      format('%s is no address of an agent', coalesce(quote_literal(left(p_url, 60)), 'null')),
      jsonb_build_object('argument', 'agent_url'),
      'http or https, a host, perhaps a port and a path, up to 200 bytes: http://localhost:9000'
    );
  end if;
  return rtrim(p_url, '/');
end;
$$;

comment on function treadle.agent_url_of(text) is
'Internal: checks the address of an agent of the harness.';

revoke all on function treadle.agent_url_of(text) from public;
