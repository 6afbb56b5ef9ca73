-- 0001_foundation: the schema, default privileges, the history of the schema, and time-ordered ids.
--
-- A new database has no schema to own yet, so this file runs with the rights of the login that
-- installs, creates the schema for treadle_owner and then takes that role.

create schema treadle authorization treadle_owner;

comment on schema treadle is 'Task queue: every task is a row, and functions change its state.';

set local role treadle_owner;

-- Applies to every function that treadle_owner creates in this database: without a grant, nobody
-- but the owner can call it.
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

comment on table treadle.code is 'Checksum of the installed functions, views and triggers.';

-- Transactions that must not run at the same time update the same row: checks for cycles in DAGs,
-- and checks of the depth of a queue.
create table treadle.locks (
  name     text not null,
  touched  bigint not null default 0,
  constraint locks_pkey primary key (name)
)
with (fillfactor = 50);

comment on table treadle.locks is 'Rows that transactions update to run one after the other.';

-- PostgreSQL 18 has uuidv7(). Older versions build the same layout (RFC 9562, method 3): 48 bits of
-- milliseconds, 12 bits for the fraction of the millisecond, 62 random bits.
--
-- The function is a column default, so it runs under the search_path of the session that inserts.
-- A SQL-standard body is parsed once, here: no name in it is looked up again.
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

comment on function treadle.uuidv7() is 'A new time-ordered id.';
