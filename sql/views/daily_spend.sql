-- daily_spend: what was paid each day, by agent, model, type and project; days are those of UTC.

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
  -- Of tasks that were pruned.
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

grant select on treadle.daily_spend to treadle_observer, treadle_operator;
