-- tasks_910_orphan_artifacts: see tg_tasks__orphan_artifacts.

create or replace trigger tasks_910_orphan_artifacts
after delete on treadle.tasks
referencing old table as removed
for each statement
execute function treadle.tg_tasks__orphan_artifacts();
