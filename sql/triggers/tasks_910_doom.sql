-- tasks_910_doom: see tg_tasks__doom.

create or replace trigger tasks_910_doom
after delete on treadle.tasks
referencing old table as removed
for each statement
execute function treadle.tg_tasks__doom();
