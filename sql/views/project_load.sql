-- project_load: waiting and running tasks of each project, and its share in fair queues.

create view treadle.project_load as
with live as (
  select
    tasks.project_id,
    count(*) filter (where tasks.status = 'ready') as ready,
    count(*) filter (
      where tasks.status in ('created', 'pending', 'ready', 'retrying', 'blocked')
    ) as waiting,
    count(*) filter (where tasks.status in ('claimed', 'running', 'validating')) as running
  from treadle.tasks
  where tasks.completed_at is null and tasks.project_id is not null
  group by tasks.project_id
)

select
  projects.id,
  projects.name,
  projects.share,
  projects.external_ref,
  coalesce(live.ready, 0) as ready,
  coalesce(live.waiting, 0) as waiting,
  coalesce(live.running, 0) as running,
  projects.created_at
from treadle.projects
left join live on projects.id = live.project_id;

comment on view treadle.project_load is 'Projects with their share and their load.';
comment on column treadle.project_load.id is 'Id of the project.';
comment on column treadle.project_load.name is 'Unique name.';
comment on column treadle.project_load.share is 'Share of the project in fair queues.';
comment on column treadle.project_load.external_ref is 'Reference in another system.';
comment on column treadle.project_load.ready is 'Tasks that can be claimed.';
comment on column treadle.project_load.waiting is
'Tasks that have not been claimed, including ready ones.';
comment on column treadle.project_load.running is 'Tasks claimed or running.';
comment on column treadle.project_load.created_at is 'When it was created.';

grant select on treadle.project_load to treadle_observer, treadle_operator;
