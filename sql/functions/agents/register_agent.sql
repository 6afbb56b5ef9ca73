-- register_agent: register an agent, or register it again after a restart.
--
-- select treadle.register_agent('coder-1', p_capabilities => array['git', 'python']);
--
-- An agent with p_claims_ahead claims more tasks than it runs, to have the next ones at hand. It
-- keeps p_max_concurrent_tasks itself, and claims do not check it. Without p_budget_usd, a budget
-- that the agent has stays as it is.
--
-- Concurrency: the last registration under an id wins.
-- Lock order:  agents, spend, budgets.
-- Raises:      TR001 invalid argument.

create or replace function treadle.register_agent(
  p_id                    text,
  p_type                  text default 'worker',
  p_capabilities          text[] default '{}',
  p_models                text[] default '{}',
  p_queues                text[] default '{default}',
  p_task_types            text[] default null,
  p_max_concurrent_tasks  integer default null,
  p_budget_usd            numeric default null,
  p_heartbeat_s           double precision default 30,
  p_claim_ttl_s           double precision default 60,
  p_url                   text default null,
  p_meta                  jsonb default '{}',
  p_claims_ahead          boolean default false
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_constraint text;
  v_column     text;
begin
  insert into treadle.agents (
    id, type, capabilities, models, queues, task_types, max_concurrent_tasks,
    heartbeat_s, claim_ttl_s, url, meta, claims_ahead, heartbeat_at, registered_at
  )
  values (
    p_id, p_type, p_capabilities, p_models, p_queues, p_task_types, p_max_concurrent_tasks,
    p_heartbeat_s, p_claim_ttl_s, p_url, p_meta, p_claims_ahead, treadle.clock(), treadle.clock()
  )
  on conflict (id) do update
  set
    type = excluded.type,
    status = 'active',
    silent = false,
    capabilities = excluded.capabilities,
    models = excluded.models,
    queues = excluded.queues,
    task_types = excluded.task_types,
    max_concurrent_tasks = excluded.max_concurrent_tasks,
    heartbeat_s = excluded.heartbeat_s,
    claim_ttl_s = excluded.claim_ttl_s,
    url = excluded.url,
    meta = excluded.meta,
    claims_ahead = excluded.claims_ahead,
    assigned_only = excluded.assigned_only,
    heartbeat_at = excluded.heartbeat_at,
    registered_at = excluded.registered_at;
  if p_budget_usd is not null then
    perform treadle.ensure_budget('agent', p_id, p_budget_usd);
  end if;
  return p_id;
exception
  when check_violation or not_null_violation or data_exception then
    get stacked diagnostics v_constraint = constraint_name, v_column = column_name;
    perform treadle.raise_error(
      format(
        'agent %s cannot be registered: %s', left(quote_nullable(p_id), 60),
        treadle.constraint_message(sqlerrm, v_constraint, v_column)
      ),
      jsonb_build_object('argument', 'agent'),
      'An id has 1 to 200 characters; intervals are above 0, up to a day; limits are 0 or more.'
    );
end;
$$;

comment on function treadle.register_agent(
  text, text, text[], text[], text[], text[], integer, numeric,
  double precision, double precision, text, jsonb, boolean
) is 'Register an agent with its capabilities, limits and heartbeat interval.';

grant execute on function treadle.register_agent(
  text, text, text[], text[], text[], text[], integer, numeric,
  double precision, double precision, text, jsonb, boolean
) to treadle_worker;
