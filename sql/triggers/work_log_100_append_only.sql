-- work_log_100_append_only: see tg_work_log__append_only.

create or replace trigger work_log_100_append_only
before update or delete or truncate on treadle.work_log
for each statement
execute function treadle.tg_work_log__append_only();
