-- slow_down: attempts that a rate limit ended close their gates, and their tasks wait for them.
--
-- Concurrency: the caller holds the tasks.
-- Lock order:  gates by key, after tasks, breakers and budgets.
-- Raises:      nothing.

create or replace function treadle.slow_down(
  p_ended  treadle.ended_attempt[],
  p_keys   text[],
  p_after  double precision[],
  p_now    timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_each  record;
  v_until timestamptz;
begin
  for v_each in
    select
      tasks.id,
      (p_ended[given.at]).agent_id as agent,
      (p_ended[given.at]).next as next,
      treadle.gate_of(tasks, p_keys[given.at]) as gate,
      coalesce(p_after[given.at], treadle.retry_after_in((p_ended[given.at]).error)) as after_s
    from generate_series(1, cardinality(p_ended)) as given (at)
    inner join treadle.tasks on (p_ended[given.at]).task_id = tasks.id
    where (p_ended[given.at]).class = 'rate_limit'
    order by gate, tasks.id
  loop
    v_until := treadle.slow_gate(v_each.gate, v_each.after_s, v_each.id, v_each.agent, p_now);
    update treadle.tasks
    set retry_at = greatest(v_until, p_now)
    where tasks.id = v_each.id and v_each.next = 'retrying' and v_until is not null;
  end loop;
end;
$$;

comment on function treadle.slow_down(
  treadle.ended_attempt[], text[], double precision[], timestamptz
) is
'Internal: closes the gates that rate limits were met at, for the whole fleet.';

revoke all on function treadle.slow_down(
  treadle.ended_attempt[], text[], double precision[], timestamptz
) from public;
