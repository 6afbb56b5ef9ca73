-- gate_status: every gate that somebody made, limited or closed, and how much of a limit is used.

create view treadle.gate_status as
select
  gates.key,
  case when gates.closed_until > treadle.clock() then 'closed' else 'open' end as state,
  case when gates.closed_until > treadle.clock() then gates.closed_until end as closed_until,
  case when gates.closed_until > treadle.clock() then gates.reason end as reason,
  case when gates.closed_until > treadle.clock() then gates.closed_by end as closed_by,
  gates.slowdowns,
  gates.unit,
  gates.amount as "limit",
  gates.period_s as per_s,
  used.amount as used,
  array(
    select task_types.name
    from treadle.task_types
    where gates.key = any (task_types.gates) or 'type:' || task_types.name = gates.key
    order by task_types.name
  ) as types
from treadle.gates
left join lateral (
  select coalesce(sum(gate_uses.amount), 0) as amount
  from treadle.gate_uses
  where
    gate_uses.key = gates.key
    and gate_uses.slot
    >= floor(extract(epoch from treadle.clock()) * 60 / gates.period_s::numeric) - 60
) as used on gates.unit is not null
where gates.key not like 'over:%';

comment on view treadle.gate_status is
'Gates: closed until when and why, the limit by rate and what of it is used in its period.';

grant select on treadle.gate_status to treadle_observer, treadle_operator;
