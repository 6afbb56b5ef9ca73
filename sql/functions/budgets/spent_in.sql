-- spent_in: what the ledger has for a scope, from a moment on.
--
-- Concurrency: reads; who needs it exact keeps the ledger locked.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.spent_in(p_scope text, p_key text, p_since timestamptz)
returns numeric
language sql
stable
set search_path = ''
as $$
  select coalesce(sum(spend.usd), 0)
  from treadle.spend
  where
    spend.at >= coalesce(p_since, '-infinity')
    and case p_scope
      when 'agent' then spend.agent_id = p_key
      when 'dag' then spend.dag_id = p_key::uuid
      when 'project' then spend.project_id = p_key::uuid
      when 'type' then spend.type = p_key
      else true
    end
$$;

comment on function treadle.spent_in(text, text, timestamptz) is
'Internal: dollars that an agent, a DAG, a project, a type or all have spent.';

revoke all on function treadle.spent_in(text, text, timestamptz) from public;
