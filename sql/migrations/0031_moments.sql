-- 0031_moments: times that no client can read are moved to where they can be, and stay out.

update treadle.tasks
set run_at = least(greatest(tasks.run_at, '1970-01-01 00:00+00'), '9999-12-31 00:00+00')
where not tasks.run_at between '1970-01-01 00:00+00' and '9999-12-31 00:00+00';

update treadle.tasks
set deadline_at = least(greatest(tasks.deadline_at, '1970-01-01 00:00+00'), '9999-12-31 00:00+00')
where not tasks.deadline_at between '1970-01-01 00:00+00' and '9999-12-31 00:00+00';

update treadle.waits
set expires_at = least(greatest(waits.expires_at, '1970-01-01 00:00+00'), '9999-12-31 00:00+00')
where not waits.expires_at between '1970-01-01 00:00+00' and '9999-12-31 00:00+00';

alter table treadle.tasks
drop constraint tasks_times_check,
add constraint tasks_times_check check (
  isfinite(created_at)
  and (run_at is null or run_at between '1970-01-01 00:00+00' and '9999-12-31 00:00+00')
  and (deadline_at is null or deadline_at between '1970-01-01 00:00+00' and '9999-12-31 00:00+00')
);

alter table treadle.waits add constraint waits_times_check check (
  expires_at between '1970-01-01 00:00+00' and '9999-12-31 00:00+00'
);
