-- dead_letter_decisions_100_keep: see tg_dead_letter_decisions__keep.

create or replace trigger dead_letter_decisions_100_keep
before update or delete or truncate on treadle.dead_letter_decisions
for each statement
execute function treadle.tg_dead_letter_decisions__keep();
