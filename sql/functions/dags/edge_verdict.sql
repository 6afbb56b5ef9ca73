-- edge_verdict: what an edge onto a task in this state means: met, wait, or never.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.edge_verdict(p_status text, p_optional boolean, p_policy text)
returns text
language sql
immutable
parallel safe
return case
  when p_status = 'completed' then 'met'
  when p_status = 'cancelled' then case when p_optional then 'met' else 'never' end
  when p_status = 'dead_lettered'
    then case p_policy when 'continue' then 'met' when 'cancel' then 'never' else 'wait' end
  else 'wait'
end;

comment on function treadle.edge_verdict(text, boolean, text) is
'Internal: whether a dependency in this state holds its dependent back.';

revoke all on function treadle.edge_verdict(text, boolean, text) from public;
