-- project_list: projects by name, without a look at their tasks.

create view treadle.project_list as
select
  projects.id,
  projects.name,
  projects.external_ref,
  projects.share,
  projects.created_at,
  projects.updated_at
from treadle.projects;

comment on view treadle.project_list is 'Projects; project_load has what each has under way.';

grant select on treadle.project_list to treadle_observer, treadle_operator;
