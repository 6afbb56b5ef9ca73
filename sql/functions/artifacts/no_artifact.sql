-- no_artifact: raise that there is no such artifact.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR214 artifact not found.

create or replace function treadle.no_artifact(p_reference text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.refuse(
    format('there is no artifact %s', left(p_reference, 200)),
    jsonb_build_object('artifact', left(p_reference, 200)),
    'Name one of this task, or give the id of any: treadle artifacts list', 'TR214'
  );
end;
$$;

comment on function treadle.no_artifact(text) is
'Internal: raises that an artifact was not found.';

revoke all on function treadle.no_artifact(text) from public;
