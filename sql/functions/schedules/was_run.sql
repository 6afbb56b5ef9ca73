-- was_run: has this nominal time been dealt with?
--
-- Concurrency: true for sure while the caller holds the schedule.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.was_run(p_schedule uuid, p_nominal timestamptz)
returns boolean
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select
    exists (
      select from treadle.schedule_runs
      where
        schedule_runs.schedule_id = p_schedule and schedule_runs.nominal_at = p_nominal
    )
$$;

comment on function treadle.was_run(uuid, timestamptz) is
'Internal: whether there is a run for a nominal time.';

revoke all on function treadle.was_run(uuid, timestamptz) from public;
