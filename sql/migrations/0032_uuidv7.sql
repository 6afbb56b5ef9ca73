-- 0032_uuidv7: bind the body of uuidv7() when it is created.
--
-- It is a column default, so it runs under the search_path of the session that inserts. A body
-- of the SQL standard is parsed once, here: no name in it is looked up again.

do $$
begin
  if current_setting('server_version_num')::integer >= 180000 then
    execute $sql$
      create or replace function treadle.uuidv7() returns uuid
      language sql volatile parallel safe
      return pg_catalog.uuidv7()
    $sql$;
  else
    execute $sql$
      create or replace function treadle.uuidv7() returns uuid
      language sql volatile parallel safe
      return (
        select
          encode(
            substring(int8send(clock.us / 1000) from 3)
            || substring(int4send((7 << 12) | ((clock.us % 1000) * 4096 / 1000)::integer) from 3)
            || substring(uuid_send(gen_random_uuid()) from 9),
            'hex'
          )::uuid
        from (
          select (extract(epoch from clock_timestamp()) * 1000000)::bigint as us
        ) as clock
      )
    $sql$;
  end if;
end;
$$;
