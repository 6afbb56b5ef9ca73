-- gate_status: every gate, whether it is closed, and how much of its rate limit is used.

create view treadle.gate_status as
select
  gates.key,
  case when gates.closed_until > (select treadle.view_clock()) then 'closed' else 'open' end
    as state,
  case when gates.closed_until > (select treadle.view_clock()) then gates.closed_until end
    as closed_until,
  case when gates.closed_until > (select treadle.view_clock()) then gates.reason end as reason,
  case when gates.closed_until > (select treadle.view_clock()) then gates.closed_by end
    as closed_by,
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
    >= floor(extract(epoch from (select treadle.view_clock())) * 60 / gates.period_s::numeric) - 60
) as used on gates.unit is not null
where gates.key not like 'over:%';

comment on view treadle.gate_status is
'Gates: until when and why they are closed, their rate limit, and how much of it is used.';
comment on column treadle.gate_status.key is 'Key of the gate.';
comment on column treadle.gate_status.state is 'open or closed.';
comment on column treadle.gate_status.closed_until is 'Until when it is closed.';
comment on column treadle.gate_status.reason is 'Why it is closed.';
comment on column treadle.gate_status.closed_by is 'Actor that closed it; null if a limit did.';
comment on column treadle.gate_status.slowdowns is 'Rate limits in a row.';
comment on column treadle.gate_status.unit is 'What the limit counts: starts, tokens or usd.';
comment on column treadle.gate_status."limit" is 'Limit per period; null for none.';
comment on column treadle.gate_status.per_s is 'Length of the period in seconds.';
comment on column treadle.gate_status.used is 'Amount used in the current period.';
comment on column treadle.gate_status.types is 'Task types that name this gate.';

grant select on treadle.gate_status to treadle_observer, treadle_operator;
