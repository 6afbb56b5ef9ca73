-- events_900_notify: see tg_events__notify.

create or replace trigger events_900_notify
after insert on treadle.events
referencing new table as added
for each statement
execute function treadle.tg_events__notify();
