-- store_nodes: write the rows of new tasks that know what they wait for.
--
-- Concurrency: new rows only.
-- Lock order:  tasks.
-- Raises:      TR001 invalid argument.

create or replace function treadle.store_nodes(
  p_tasks    jsonb,
  p_home     treadle.tasks,
  p_ids      uuid[],
  p_kinds    treadle.tasks[],
  p_kind_of  integer[],
  p_waits    integer[],
  p_paths    integer[]
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids jsonb := (
    select jsonb_object_agg(given.task ->> 'name', p_ids[given.at])
    from jsonb_array_elements(p_tasks) with ordinality as given (task, at)
    where given.task ->> 'name' is not null
  );
begin
  insert into treadle.tasks (
    id, rank, created_at, run_at, deadline_at, timeout_s, parent_id, dag_id, project_id, lane_id,
    blocked_count, priority, max_attempts, max_cost_usd, ageing_rate, status, queue, type, consumer,
    assigned_agent, capabilities, tags, title, created_by, source, source_job, external_ref, notes,
    retry, validation, rerank_at, max_tokens, capped, on_budget, slot, concurrency_key, gates,
    report, models, fallback_models, delayed_at, critical_path, name, inputs, spec
  )
  select
    nodes.id, kind.rank - nodes.path * 1000000::bigint, kind.created_at, kind.run_at,
    kind.deadline_at, kind.timeout_s,
    p_home.parent_id, p_home.dag_id, coalesce(kind.project_id, p_home.project_id), kind.lane_id,
    nodes.waits, kind.priority, kind.max_attempts, kind.max_cost_usd, kind.ageing_rate,
    case
      when p_home.status = 'created' then 'created'
      when nodes.waits > 0 then 'pending'
      else kind.status
    end,
    kind.queue, kind.type, kind.consumer, kind.assigned_agent, kind.capabilities, kind.tags,
    nodes.task ->> 'title', coalesce(kind.created_by, p_home.created_by, session_user),
    kind.source, kind.source_job, kind.external_ref, kind.notes, kind.retry, kind.validation,
    kind.rerank_at, kind.max_tokens, kind.capped, kind.on_budget,
    case when nodes.waits = 0 and p_home.status is distinct from 'created' then kind.slot end,
    kind.concurrency_key, kind.gates, kind.report, kind.models, kind.fallback_models,
    kind.delayed_at, nodes.path, nodes.task ->> 'name',
    case
      when nodes.task -> 'inputs' <> '{}'
        then treadle.bind_inputs(nodes.task -> 'inputs', v_ids, p_home.dag_id)
    end,
    coalesce(nodes.task -> 'spec', '{}')
  from (
    select
      given.task, p_ids[given.at] as id, p_kind_of[given.at] as kind,
      p_waits[given.at] as waits, p_paths[given.at] as path
    from jsonb_array_elements(p_tasks) with ordinality as given (task, at)
  ) as nodes
  inner join unnest(p_kinds) with ordinality as kind on nodes.kind = kind.ordinality;
end;
$$;

comment on function treadle.store_nodes(
  jsonb, treadle.tasks, uuid[], treadle.tasks[], integer[], integer[], integer[]
) is 'Internal: inserts the tasks of a DAG.';

revoke all on function treadle.store_nodes(
  jsonb, treadle.tasks, uuid[], treadle.tasks[], integer[], integer[], integer[]
) from public;
