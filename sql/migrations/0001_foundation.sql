-- 0001_foundation: the schema, its history, and time-ordered ids.
--
-- Runs before `set role treadle_owner` is possible in a new database, so it hands the schema over.

create schema treadle authorization treadle_owner;

comment on schema treadle is 'Task queue: every task is a row, functions decide.';

set local role treadle_owner;

-- For every function that treadle_owner makes in this database: nobody may call it unasked.
alter default privileges revoke execute on functions from public;

grant usage on schema treadle to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;

create table treadle.migrations (
  version     integer not null,
  name        text not null,
  checksum    text not null,
  applied_at  timestamptz not null default clock_timestamp(),
  applied_by  text not null default session_user,
  constraint migrations_pkey primary key (version)
);

comment on table treadle.migrations is 'One row per applied migration file.';

create table treadle.code (
  only_row    boolean not null default true,
  checksum    text not null,
  applied_at  timestamptz not null default clock_timestamp(),
  constraint code_pkey primary key (only_row),
  constraint code_only_row_check check (only_row)
);

comment on table treadle.code is 'Which text of the functions and views is installed.';

-- PostgreSQL 18 brings uuidv7(); before it the same layout (RFC 9562, method 3) is built by hand:
-- 48 bits of milliseconds, 12 bits of the millisecond's fraction, 62 random bits.
do $$
begin
  if current_setting('server_version_num')::integer >= 180000 then
    execute $sql$
      create function treadle.uuidv7() returns uuid
      language sql volatile parallel safe
      as 'select pg_catalog.uuidv7()'
    $sql$;
  else
    execute $sql$
      create function treadle.uuidv7() returns uuid
      language sql volatile parallel safe
      as $body$
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
      $body$
    $sql$;
  end if;
end;
$$;

comment on function treadle.uuidv7() is 'A new time-ordered id.';
