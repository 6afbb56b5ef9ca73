-- retry_delay: seconds to wait after a failed attempt.
--
-- exponential: initial * multiplier ^ (attempt - 1), up to the cap. Jitter is half either way.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing: exponent and delay are capped before they are used.

create or replace function treadle.retry_delay(p_policy jsonb, p_attempt integer)
returns double precision
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select
    case p_policy ->> 'strategy'
      when 'immediate' then 0
      else
        least(
          (p_policy ->> 'max_delay_s')::float8,
          (p_policy ->> 'initial_delay_s')::float8
          * case p_policy ->> 'strategy'
            when 'fixed' then 1
            else least(
              power((p_policy ->> 'multiplier')::float8, least(greatest(p_attempt, 1) - 1, 60)), 1e9
            )
          end
        )
        * case when (p_policy ->> 'jitter')::boolean then 0.5 + random() else 1 end
    end
$$;

comment on function treadle.retry_delay(jsonb, integer) is
'Seconds until the next attempt under a policy, after so many attempts.';

revoke all on function treadle.retry_delay(jsonb, integer) from public;
grant execute on function treadle.retry_delay(jsonb, integer) to
treadle_observer, treadle_operator;
