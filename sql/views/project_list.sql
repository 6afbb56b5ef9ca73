-- project_list: projects by name, without a look at their tasks.

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
'Projects: each has a name of its own, label is what the work API calls it. Load: project_load.';

grant select on treadle.project_list to treadle_observer, treadle_operator;
