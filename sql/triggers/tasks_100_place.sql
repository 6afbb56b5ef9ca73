-- tasks_100_place: see tg_tasks__place.

create or replace trigger tasks_100_place
before insert on treadle.tasks
for each row
when (new.lane_id is null)
execute function treadle.tg_tasks__place();
