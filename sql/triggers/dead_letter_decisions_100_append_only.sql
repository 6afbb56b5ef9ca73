-- dead_letter_decisions_100_append_only: see tg_dead_letter_decisions__append_only.

create or replace trigger dead_letter_decisions_100_append_only
before update or delete or truncate on treadle.dead_letter_decisions
for each statement
execute function treadle.tg_dead_letter_decisions__append_only();
