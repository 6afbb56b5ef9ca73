-- edge_policy: what a dead letter does to the dependent over one edge, by the policy of the DAG.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.edge_policy(p_policy text, p_optional boolean)
returns text
language sql
immutable
parallel safe
return case
  when p_policy = 'wait' then 'wait'
  when p_optional then 'continue'
  when p_policy = 'cancel' then 'cancel'
  else 'wait'
end;

comment on function treadle.edge_policy(text, boolean) is
'Internal: wait, cancel or continue; only optional edges let a dependent continue.';

revoke all on function treadle.edge_policy(text, boolean) from public;
