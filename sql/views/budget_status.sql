-- budget_status: what each budget has spent, reserved and left, and which tasks wait for it.

create view treadle.budget_status as
with shown as (
  select
    budgets.id,
    date_trunc(budgets.period, (select treadle.view_clock()), 'UTC') as period_start,
    case
      when
        budgets.period_start < date_trunc(budgets.period, (select treadle.view_clock()), 'UTC')
        then 0
      else budgets.spent_usd
    end as spent_usd
  from treadle.budgets
)

select
  budgets.id,
  budgets.scope,
  budgets.scope_key as key,
  case budgets.scope
    when 'dag'
      then (select dags.name from treadle.dags where dags.id = budgets.scope_key::uuid)
    when 'project'
      then (
        select projects.name from treadle.projects where projects.id = budgets.scope_key::uuid
      )
    else nullif(budgets.scope_key, '')
  end as name,
  budgets.period,
  budgets.limit_usd,
  shown.spent_usd,
  budgets.reserved_usd,
  greatest(budgets.limit_usd - shown.spent_usd - budgets.reserved_usd, 0) as left_usd,
  greatest(shown.spent_usd + budgets.reserved_usd - budgets.limit_usd, 0) as overrun_usd,
  budgets.on_exhausted,
  (
    select count(*) from treadle.tasks
    where tasks.budget_id = budgets.id
  ) as parked_tasks,
  (
    select waits.id from treadle.waits
    where waits.budget_id = budgets.id and waits.status = 'open'
    order by waits.opened_at
    limit 1
  ) as open_wait,
  shown.period_start,
  (
    (shown.period_start at time zone 'UTC') + ('1 ' || budgets.period)::interval
  ) at time zone 'UTC' as period_end,
  budgets.created_by as set_by,
  budgets.created_at
from treadle.budgets
inner join shown on budgets.id = shown.id;

comment on view treadle.budget_status is
'One row per budget: limit, spent, reserved, left, overrun, and the tasks that wait for it.';
comment on column treadle.budget_status.id is 'Id of the budget.';
comment on column treadle.budget_status.scope is 'agent, dag, project, type or all.';
comment on column treadle.budget_status.key is 'Key of the scope, such as an agent id.';
comment on column treadle.budget_status.name is 'Name of the scope for people.';
comment on column treadle.budget_status.period is
'hour, day, week or month; null if it never resets.';
comment on column treadle.budget_status.limit_usd is 'Limit in dollars.';
comment on column treadle.budget_status.spent_usd is 'Dollars spent in this period.';
comment on column treadle.budget_status.reserved_usd is 'Dollars reserved by claimed tasks.';
comment on column treadle.budget_status.left_usd is 'Dollars neither spent nor reserved.';
comment on column treadle.budget_status.overrun_usd is 'Dollars spent above the limit.';
comment on column treadle.budget_status.on_exhausted is
'What happens if it is exhausted: ask or fail.';
comment on column treadle.budget_status.parked_tasks is 'Tasks that wait for it.';
comment on column treadle.budget_status.open_wait is 'Id of the open question about it.';
comment on column treadle.budget_status.period_start is 'When the period began.';
comment on column treadle.budget_status.period_end is 'When the period ends.';
comment on column treadle.budget_status.set_by is 'Actor that set it last.';
comment on column treadle.budget_status.created_at is 'When it was created.';

grant select on treadle.budget_status to treadle_observer, treadle_operator;
