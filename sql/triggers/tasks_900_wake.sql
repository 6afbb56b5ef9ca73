-- tasks_900_wake: see tg_tasks__wake.

create or replace trigger tasks_900_wake
after insert on treadle.tasks
referencing new table as added
for each statement
execute function treadle.tg_tasks__wake();
