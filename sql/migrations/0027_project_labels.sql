-- 0027_project_labels: projects of the work API may be called alike.

-- A project has one name of its own, by which tokens, budgets and options know it. One that is
-- called like another has a number in its name, and here what it is called.
alter table treadle.projects
add column label text,
drop constraint projects_name_check,
add constraint projects_name_check check (
  octet_length(name) between 1 and case when label is null then 200 else 210 end
),
add constraint projects_label_check check (octet_length(label) between 1 and 200);

comment on column treadle.projects.label is
'What the work API calls it, where another project has that name.';

-- It makes a project each time, and so says only which.
drop function if exists treadle.create_project(text, text);
