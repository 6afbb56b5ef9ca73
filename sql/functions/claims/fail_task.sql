-- fail_task: end one failed attempt; an error when the claim was superseded.
--
-- select treadle.fail_task(id, token, 'tests are red');
--
-- Concurrency: see fail_tasks.
-- Lock order:  tasks, then the history.
-- Raises:      TR101 claim lost.

create or replace function treadle.fail_task(
  p_id           uuid,
  p_token        uuid,
  p_error        text default null,
  p_class        text default null,
  p_action       text default null,
  p_retry_after  double precision default null,
  p_key          text default null,
  p_feedback     jsonb default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_verdict text;
begin
  select ended.verdict
  into v_verdict
  from treadle.fail_tasks(
    array[p_id], array[p_token], array[p_class], array[p_error], array[p_action],
    array[p_retry_after], array[p_key],
    case when p_feedback is not null then array[p_feedback] end
  ) as ended;
  -- Cancelled is what was asked for here, not a claim that was lost.
  if p_action = 'cancel' and v_verdict = 'cancelled' then
    return v_verdict;
  end if;
  return treadle.demand_claim(p_id, v_verdict);
end;
$$;

comment on function treadle.fail_task(
  uuid, uuid, text, text, text, double precision, text, jsonb
) is 'Fail one task; raises when another claim has taken over.';

revoke all on function treadle.fail_task(
  uuid, uuid, text, text, text, double precision, text, jsonb
) from public;
grant execute on function
treadle.fail_task(uuid, uuid, text, text, text, double precision, text, jsonb) to treadle_worker;
