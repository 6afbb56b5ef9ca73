-- tasks_900_notify: see tg_tasks__notify.

create or replace trigger tasks_900_notify
after insert on treadle.tasks
referencing new table as added
for each statement
execute function treadle.tg_tasks__notify();
