-- dead_letter_groups: undecided dead letters, grouped by what went wrong.

create view treadle.dead_letter_groups as
select
  grouped.fingerprint,
  grouped.class,
  grouped.about,
  grouped.letters,
  grouped.poison_pills,
  grouped.escalated,
  grouped.queues,
  grouped.types,
  (
    select array_agg(distinct attempts.agent_id order by attempts.agent_id)
    from treadle.dead_letters
    inner join treadle.attempts on dead_letters.task_id = attempts.task_id
    where
      dead_letters.resolution is null and dead_letters.fingerprint = grouped.fingerprint
  ) as agents,
  grouped.attempts,
  grouped.total_cost_usd,
  grouped.first_at,
  grouped.last_at,
  sample.task_id as sample_task,
  sample.reason as sample_reason
from (
  select
    dead_letters.fingerprint,
    min(dead_letters.class) as class,
    min(dead_letters.about) as about,
    count(*) as letters,
    count(*) filter (where dead_letters.poison_pill) as poison_pills,
    count(dead_letters.escalated_at) as escalated,
    array_agg(distinct tasks.queue order by tasks.queue) as queues,
    array_agg(distinct tasks.type order by tasks.type) as types,
    sum(dead_letters.attempts) as attempts,
    sum(dead_letters.total_cost_usd) as total_cost_usd,
    min(dead_letters.dead_lettered_at) as first_at,
    max(dead_letters.dead_lettered_at) as last_at
  from treadle.dead_letters
  inner join treadle.tasks on dead_letters.task_id = tasks.id
  where dead_letters.resolution is null
  group by dead_letters.fingerprint
) as grouped
cross join lateral (
  select
    dead_letters.task_id,
    dead_letters.reason
  from treadle.dead_letters
  where
    dead_letters.resolution is null
    and dead_letters.fingerprint = grouped.fingerprint
    and dead_letters.dead_lettered_at = grouped.last_at
  order by dead_letters.id desc
  limit 1
) as sample;

comment on view treadle.dead_letter_groups is
'One row per fingerprint of undecided dead letters: count, tasks, agents, times and cost.';
comment on column treadle.dead_letter_groups.fingerprint is
'Identifier shared by errors of the same kind.';
comment on column treadle.dead_letter_groups.class is 'Failure class.';
comment on column treadle.dead_letter_groups.about is
'First line of the error with variable parts replaced.';
comment on column treadle.dead_letter_groups.letters is 'Open dead letters in the group.';
comment on column treadle.dead_letter_groups.poison_pills is
'How many of them killed several workers.';
comment on column treadle.dead_letter_groups.escalated is 'How many of them are escalated.';
comment on column treadle.dead_letter_groups.queues is 'Queues of the tasks.';
comment on column treadle.dead_letter_groups.types is 'Types of the tasks.';
comment on column treadle.dead_letter_groups.agents is 'Agents of the last attempts.';
comment on column treadle.dead_letter_groups.attempts is 'Attempts used in total.';
comment on column treadle.dead_letter_groups.total_cost_usd is 'What the tasks cost, in dollars.';
comment on column treadle.dead_letter_groups.first_at is
'When the first of them was dead-lettered.';
comment on column treadle.dead_letter_groups.last_at is 'When the last of them was dead-lettered.';
comment on column treadle.dead_letter_groups.sample_task is 'Id of one of the tasks.';
comment on column treadle.dead_letter_groups.sample_reason is 'Failure text of that task.';

grant select on treadle.dead_letter_groups to treadle_observer, treadle_operator;
