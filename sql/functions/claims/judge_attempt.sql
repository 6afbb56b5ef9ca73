-- judge_attempt: what follows a failed attempt: again, later, never, or cancelled.
--
-- A rate limit gives the attempt back, a bounded number of times; how long it waits is up to its
-- gate, see slow_down. Three attempts that failed on two agents make a poison pill: the task is to
-- blame, not the agent. Those that failed with this database are nobody's fault.
--
-- Concurrency: the caller holds the row.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.judge_attempt(
  p_task         treadle.tasks,
  p_class        text,
  p_action       text,
  p_retry_after  double precision,
  out next         text,
  out delay_s      double precision,
  out poison_pill  boolean,
  out refunded     boolean
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_policy jsonb := treadle.retry_policy(p_task.queue, p_task.type, p_task.retry);
  v_class  jsonb := to_jsonb(p_class);
begin
  refunded := p_class = 'rate_limit'
    and p_action is distinct from 'fail'
    and p_task.rate_limits < (v_policy ->> 'max_rate_limits')::integer;
  poison_pill := (v_policy ->> 'poison')::boolean and not refunded and p_task.attempt >= 3 and (
    select count(*) >= 3 and count(distinct tried.agent_id) >= 2
    from (
      select attempts.agent_id
      from treadle.attempts
      where
        attempts.task_id = p_task.id and attempts.outcome = 'failed'
        and attempts.class <> 'unavailable'
        -- Since a person gave it a new round.
        and attempts.ended_at > all (
          select dead_letters.resolved_at
          from treadle.dead_letters
          where dead_letters.task_id = p_task.id and dead_letters.resolution is not null
        )
      union all
      select p_task.agent_id where p_class <> 'unavailable'
    ) as tried
  );

  -- A delay that a handler or a server asked for is kept within reason.
  delay_s := case
    when p_retry_after >= 0 then least(p_retry_after, 2592000)
    when p_class = 'rate_limit' then 60
    else treadle.retry_delay(v_policy, p_task.attempt)
  end;
  next := case
    when p_action = 'cancel' then 'cancelled'
    when refunded and delay_s > 0 then 'retrying'
    when refunded then 'ready'
    when p_action = 'fail' or poison_pill or p_task.attempt >= p_task.max_attempts
      then 'dead_lettered'
    when p_action is distinct from 'retry' and (
      v_policy -> 'no_retry_on' @> v_class
      or (v_policy -> 'retry_on' <> 'null' and not v_policy -> 'retry_on' @> v_class)
    ) then 'dead_lettered'
    when delay_s > 0 then 'retrying'
    else 'ready'
  end;
end;
$$;

comment on function treadle.judge_attempt(treadle.tasks, text, text, double precision) is
'Internal: decides what becomes of a task whose attempt failed.';

revoke all on function treadle.judge_attempt(treadle.tasks, text, text, double precision)
from public;
