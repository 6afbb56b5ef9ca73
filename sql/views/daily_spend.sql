-- daily_spend: spending per day in UTC, by agent, model, type and project.

create view treadle.daily_spend as
with paid as (
  select
    spend.at,
    spend.agent_id,
    spend.model,
    spend.type,
    spend.project_id,
    1 as calls,
    spend.input_tokens,
    spend.output_tokens,
    spend.usd
  from treadle.spend
  union all
  -- Totals of pruned tasks.
  select
    spend_hours.hour,
    spend_hours.agent_id,
    spend_hours.model,
    spend_hours.type,
    spend_hours.project_id,
    spend_hours.calls,
    spend_hours.input_tokens,
    spend_hours.output_tokens,
    spend_hours.usd
  from treadle.spend_hours
)

select
  (paid.at at time zone 'UTC')::date as day,
  paid.agent_id as agent,
  paid.model,
  paid.type,
  paid.project_id,
  projects.name as project,
  sum(paid.calls)::bigint as calls,
  sum(paid.input_tokens)::bigint as input_tokens,
  sum(paid.output_tokens)::bigint as output_tokens,
  sum(paid.usd) as usd
from paid
left join treadle.projects on paid.project_id = projects.id
group by
  (paid.at at time zone 'UTC')::date, paid.agent_id, paid.model, paid.type, paid.project_id,
  projects.name;

comment on view treadle.daily_spend is
'One row per day, agent, model, type and project: calls, tokens and dollars.';
comment on column treadle.daily_spend.day is 'Day in UTC.';
comment on column treadle.daily_spend.agent is 'Agent that spent it.';
comment on column treadle.daily_spend.model is 'Model that was paid for.';
comment on column treadle.daily_spend.type is 'Task type.';
comment on column treadle.daily_spend.project_id is 'Id of its project.';
comment on column treadle.daily_spend.project is 'Name of the project.';
comment on column treadle.daily_spend.calls is 'Number of paid calls.';
comment on column treadle.daily_spend.input_tokens is 'Input tokens used.';
comment on column treadle.daily_spend.output_tokens is 'Output tokens used.';
comment on column treadle.daily_spend.usd is 'Dollars.';

grant select on treadle.daily_spend to treadle_observer, treadle_operator;
