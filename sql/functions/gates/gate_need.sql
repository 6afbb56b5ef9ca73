-- gate_need: what a task takes of a limit when it is claimed.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.gate_need(p_task treadle.tasks, p_unit text)
returns numeric
language sql
immutable
parallel safe
return case p_unit
  when 'starts' then 1
  when 'tokens'
    then
      greatest(
        coalesce(p_task.max_tokens - p_task.input_tokens - p_task.output_tokens, 0), 0
      )
  else greatest(coalesce(p_task.max_cost_usd - p_task.cost_usd, 0), 0)
end;

comment on function treadle.gate_need(treadle.tasks, text) is
'Internal: one start, or what it may still spend of tokens or dollars; 0 when it does not say.';

revoke all on function treadle.gate_need(treadle.tasks, text) from public;
