-- failure_figures: how many attempts at tasks of a type ended since a moment, and failed.
--
-- At most so many failures are looked at, the newest: with more of them the time begins later. And
-- no more successes are counted than it takes to know that the share is within the limit.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.failure_figures(
  p_type          text,
  p_since         timestamptz,
  p_now           timestamptz,
  p_limit         numeric,
  p_min_attempts  bigint
)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  c_most constant integer := 20000;
  v_since     timestamptz := p_since;
  v_failed    bigint;
  v_completed bigint;
begin
  select greatest(p_since, min(newest.ended_at) filter (where newest.at = c_most))
  into v_since
  from (
    select attempts.ended_at, row_number() over (order by attempts.ended_at desc) as at
    from treadle.attempts
    where attempts.ended_at > p_since and attempts.ended_at <= p_now
    order by attempts.ended_at desc
    limit c_most
  ) as newest;

  select count(*)
  into v_failed
  from treadle.attempts
  inner join treadle.tasks on attempts.task_id = tasks.id
  where
    attempts.ended_at > v_since and attempts.ended_at <= p_now and attempts.outcome = 'failed'
    and tasks.type = p_type;

  select count(*)
  into v_completed
  from (
    select from treadle.tasks
    where
      tasks.completed_at > v_since and tasks.completed_at <= p_now
      and tasks.status = 'completed' and tasks.type = p_type
    -- Without a failure one is enough; with a limit of nothing all are counted.
    limit case
      when v_failed = 0 then 1
      when p_limit > 0 then greatest(
        ceil(v_failed * (1 - p_limit) / p_limit), p_min_attempts - v_failed
      )
    end
  ) as good;

  return jsonb_build_object(
    'type', p_type, 'since', v_since, 'until', p_now, 'attempts', v_failed + v_completed,
    'failed', v_failed, 'rate', round(v_failed::numeric / greatest(v_failed + v_completed, 1), 4)
  );
end;
$$;

comment on function treadle.failure_figures(
  text, timestamptz, timestamptz, numeric, bigint
) is
'Internal: the attempts at tasks of a type, and the share that failed.';

revoke all on function treadle.failure_figures(
  text, timestamptz, timestamptz, numeric, bigint
) from public;
