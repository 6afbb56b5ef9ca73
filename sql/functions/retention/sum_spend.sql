-- sum_spend: sum up by the hour what tasks have cost, and delete the single calls.
--
-- Days and budgets are as right as before: no budget has a period shorter than an hour.
--
-- Concurrency: sums are written in one order; another pruner may have to wait for them.
-- Lock order:  spend, spend_hours.
-- Raises:      nothing.

create or replace function treadle.sum_spend(p_ids uuid[])
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
  with gone as (
    delete from treadle.spend
    where spend.task_id = any (p_ids)
    returning *
  )

  insert into treadle.spend_hours (
    hour, agent_id, model, type, project_id, calls, input_tokens, output_tokens, usd
  )
  select
    date_trunc('hour', gone.at, 'UTC') as hour, gone.agent_id, gone.model, gone.type,
    gone.project_id, count(*), sum(gone.input_tokens), sum(gone.output_tokens), sum(gone.usd)
  from gone
  group by hour, gone.agent_id, gone.model, gone.type, gone.project_id
  order by hour, gone.agent_id, gone.model, gone.type, gone.project_id
  on conflict (hour, agent_id, model, type, project_id) do update
  set
    calls = spend_hours.calls + excluded.calls,
    input_tokens = spend_hours.input_tokens + excluded.input_tokens,
    output_tokens = spend_hours.output_tokens + excluded.output_tokens,
    usd = spend_hours.usd + excluded.usd;
$$;

comment on function treadle.sum_spend(uuid[]) is
'Internal: keeps the sums of the ledger where its tasks go.';

revoke all on function treadle.sum_spend(uuid[]) from public;
