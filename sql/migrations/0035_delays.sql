-- 0035_delays: since when a delay counts, so that one made under a wrong clock can be put right.

alter table treadle.tasks add column delayed_at timestamptz;

comment on column treadle.tasks.delayed_at is
'Since when the delay up to retry_at or run_at counts; empty where a caller named the moment.';

update treadle.tasks
set delayed_at = clock_timestamp()
where tasks.status = 'retrying';

create index tasks_delayed_idx on treadle.tasks (delayed_at)
where status in ('pending', 'retrying') and delayed_at is not null;
