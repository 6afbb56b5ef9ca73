-- artifact_details: the files of tasks, with their location and origin.

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
'One row per artifact of a task; only stored and linked artifacts can be used.';
comment on column treadle.artifact_details.id is 'Id of the artifact.';
comment on column treadle.artifact_details.task_id is 'Id of the task.';
comment on column treadle.artifact_details.name is 'Name of the file in its task.';
comment on column treadle.artifact_details.status is
'storing, stored, linked or doomed (to be deleted).';
comment on column treadle.artifact_details.media_type is 'Media type of the file.';
comment on column treadle.artifact_details.bytes is 'Size of the file in bytes.';
comment on column treadle.artifact_details.sha256 is 'SHA-256 of the file, in hex.';
comment on column treadle.artifact_details.uri is 'Where the file is.';
comment on column treadle.artifact_details.key is
'Key in the artifact store; null if the file is elsewhere.';
comment on column treadle.artifact_details.attempt is 'Attempt that made it.';
comment on column treadle.artifact_details.agent_id is 'Agent that made it.';
comment on column treadle.artifact_details.queue is 'Name of its queue.';
comment on column treadle.artifact_details.type is 'Name of its task type.';
comment on column treadle.artifact_details.title is 'Short text for people.';
comment on column treadle.artifact_details.task_status is 'State of its task.';
comment on column treadle.artifact_details.created_at is 'When it was created.';
comment on column treadle.artifact_details.stored_at is 'When the file was stored completely.';

grant select on treadle.artifact_details to treadle_observer, treadle_operator;
