-- 0014_artifacts: files of tasks in a store of our own, from their reservation to their removal.

alter table treadle.artifacts
add column status text not null default 'linked',
add column key text,
add column attempt smallint,
add column agent_id text,
add column stored_at timestamptz,
add constraint artifacts_status_check check (
  status in ('linked', 'storing', 'stored', 'doomed')
),
add constraint artifacts_key_check check ((status = 'linked') = (key is null)),
add constraint artifacts_stored_check check (
  status <> 'stored' or num_nonnulls(bytes, sha256, stored_at) = 3
);

comment on column treadle.artifacts.status is
'linked: the file lies elsewhere. storing: it is on its way. stored: it is there. doomed: it goes.';
comment on column treadle.artifacts.key is
'Where the file is in the store; null when it lies elsewhere.';

-- What the sweeper looks at; stored files are not among it.
create index artifacts_unfinished_idx on treadle.artifacts (id)
where status in ('storing', 'doomed');

create table treadle.artifact_store (
  only_one  boolean not null default true,
  id        uuid not null default treadle.uuidv7(),
  constraint artifact_store_pkey primary key (only_one),
  constraint artifact_store_only_one_check check (only_one)
);

comment on table treadle.artifact_store is
'The folder of this database in a store: others may keep their files beside it.';
