-- check_artifact: refuse a reservation that makes no sense.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_artifact(
  p_artifact    uuid,
  p_name        text,
  p_url         text,
  p_media_type  text
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong text := case
    when p_artifact is null then 'artifact must be an id'
    when octet_length(p_name) between 1 and 1000 is not true then 'name must have 1 to 1000 bytes'
    when octet_length(p_url) between 1 and 3000 is not true then 'url must have 1 to 3000 bytes'
    when octet_length(p_media_type) not between 1 and 200 then 'media_type must have 1 to 200 bytes'
  end;
begin
  if v_wrong is not null then
    perform treadle.refuse(
      'artifact: ' || v_wrong, jsonb_build_object('argument', split_part(v_wrong, ' ', 1)),
      'Give the file a short name: report.pdf'
    );
  end if;
end;
$$;

comment on function treadle.check_artifact(uuid, text, text, text) is
'Internal: refuses a name, an address or a media type that cannot be kept.';

revoke all on function treadle.check_artifact(uuid, text, text, text) from public;
