-- project_list: projects by name, without reading their tasks.

create view treadle.project_list as
select
  projects.id,
  projects.name,
  coalesce(projects.label, projects.name) as label,
  projects.external_ref,
  projects.share,
  projects.created_at,
  projects.updated_at
from treadle.projects;

comment on view treadle.project_list is
'Projects. For their load see project_load.';
comment on column treadle.project_list.id is 'Id of the project.';
comment on column treadle.project_list.name is 'Unique name.';
comment on column treadle.project_list.label is 'Name in the work API, which need not be unique.';
comment on column treadle.project_list.external_ref is 'Reference in another system.';
comment on column treadle.project_list.share is 'Share of the project in fair queues.';
comment on column treadle.project_list.created_at is 'When it was created.';
comment on column treadle.project_list.updated_at is 'When it was changed last.';

grant select on treadle.project_list to treadle_observer, treadle_operator;
