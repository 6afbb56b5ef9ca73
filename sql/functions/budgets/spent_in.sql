-- spent_in: what the ledger has for a scope, from a moment on.
--
-- With what was summed up when tasks were pruned, by whole hours; a DAG goes with all its tasks.
--
-- Concurrency: reads; who needs it exact keeps the ledger locked.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.spent_in(p_scope text, p_key text, p_since timestamptz)
returns numeric
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(sum(paid.usd), 0)
  from (
    select spend.at, spend.agent_id, spend.dag_id, spend.project_id, spend.type, spend.usd
    from treadle.spend
    union all
    select
      spend_hours.hour, spend_hours.agent_id, null, spend_hours.project_id, spend_hours.type,
      spend_hours.usd
    from treadle.spend_hours
  ) as paid
  where
    paid.at >= coalesce(p_since, '-infinity')
    and case p_scope
      when 'agent' then paid.agent_id = p_key
      when 'dag' then paid.dag_id = p_key::uuid
      when 'project' then paid.project_id = p_key::uuid
      when 'type' then paid.type = p_key
      else true
    end
$$;

comment on function treadle.spent_in(text, text, timestamptz) is
'Internal: dollars that an agent, a DAG, a project, a type or all have spent.';

revoke all on function treadle.spent_in(text, text, timestamptz) from public;
