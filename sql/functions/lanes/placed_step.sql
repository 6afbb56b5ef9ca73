-- placed_step: the step of its deadline by which a task was placed last.
--
-- Its lane says so; outside of the seven steps, whether there is still one to come.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.placed_step(
  p_urgency    bigint,
  p_deadline   timestamptz,
  p_rerank_at  timestamptz
)
returns integer
language sql
immutable
parallel safe
return case
  when p_urgency > 0 then round(log(2, p_urgency / 100000.0))::integer
  when p_deadline is not null and p_rerank_at is null then 7
  else -1
end;

comment on function treadle.placed_step(bigint, timestamptz, timestamptz) is
'Internal: the step that the rank of a task stands for.';

revoke all on function treadle.placed_step(bigint, timestamptz, timestamptz) from public;
