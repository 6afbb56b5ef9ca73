-- events_900_tell: see tg_events__tell.

create or replace trigger events_900_tell
after insert on treadle.events
referencing new table as added
for each statement
execute function treadle.tg_events__tell();
