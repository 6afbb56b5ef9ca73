-- daily_spend: what was paid each day, by agent, model, type and project; days are those of UTC.

create view treadle.daily_spend as
select
  (spend.at at time zone 'UTC')::date as day,
  spend.agent_id as agent,
  spend.model,
  spend.type,
  spend.project_id,
  projects.name as project,
  count(*) as calls,
  sum(spend.input_tokens)::bigint as input_tokens,
  sum(spend.output_tokens)::bigint as output_tokens,
  sum(spend.usd) as usd
from treadle.spend
left join treadle.projects on spend.project_id = projects.id
group by
  (spend.at at time zone 'UTC')::date, spend.agent_id, spend.model, spend.type, spend.project_id,
  projects.name;

comment on view treadle.daily_spend is
'One row per day, agent, model, type and project: calls, tokens and dollars.';

grant select on treadle.daily_spend to treadle_observer, treadle_operator;
