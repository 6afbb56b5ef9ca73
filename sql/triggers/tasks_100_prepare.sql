-- tasks_100_prepare: see tg_tasks__prepare.

create or replace trigger tasks_100_prepare
before insert on treadle.tasks
for each row
when (new.lane_id is null)
execute function treadle.tg_tasks__prepare();
