-- common_errors: of what the newest failures of a type were, the commonest kinds first.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.common_errors(
  p_type   text,
  p_since  timestamptz,
  p_now    timestamptz
)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  with failed as (
    select attempts.task_id, attempts.class, attempts.ended_at, attempts.error, attempts.reason
    from treadle.attempts
    inner join treadle.tasks on attempts.task_id = tasks.id
    where
      attempts.ended_at > p_since and attempts.ended_at <= p_now and attempts.outcome = 'failed'
      and tasks.type = p_type
    order by attempts.ended_at desc
    limit 500
  ),

  alike as (
    select
      failed.class,
      treadle.error_fingerprint(
        failed.class, treadle.error_about(coalesce(failed.error, failed.reason))
      ) as fingerprint,
      count(*) as times,
      (array_agg(failed.task_id order by failed.ended_at desc))[1] as task_id,
      left(
        (array_agg(coalesce(failed.error, failed.reason) order by failed.ended_at desc))[1], 500
      ) as error
    from failed
    group by 1, 2
    order by times desc, fingerprint
    limit 5
  )

  select coalesce(jsonb_agg(to_jsonb(alike) order by alike.times desc, alike.fingerprint), '[]')
  from alike
$$;

comment on function treadle.common_errors(text, timestamptz, timestamptz) is
'Internal: the kinds of errors of a type, with how often and an example.';

revoke all on function treadle.common_errors(text, timestamptz, timestamptz) from public;
