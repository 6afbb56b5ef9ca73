-- artifact_details: the files of tasks, where they are, and who made them.

create view treadle.artifact_details as
select
  artifacts.id,
  artifacts.task_id,
  artifacts.name,
  artifacts.status,
  artifacts.media_type,
  artifacts.bytes,
  artifacts.sha256,
  artifacts.uri,
  artifacts.key,
  artifacts.attempt,
  artifacts.agent_id,
  tasks.queue,
  tasks.type,
  tasks.title,
  tasks.status as task_status,
  artifacts.created_at,
  artifacts.stored_at
from treadle.artifacts
inner join treadle.tasks on artifacts.task_id = tasks.id
where artifacts.status <> 'doomed';

comment on view treadle.artifact_details is
'One row per artifact of a task; only stored and linked ones can be used.';

grant select on treadle.artifact_details to treadle_observer, treadle_operator;
