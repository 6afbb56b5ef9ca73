-- work_log_100_keep: see tg_work_log__keep.

create or replace trigger work_log_100_keep
before update or delete or truncate on treadle.work_log
for each statement
execute function treadle.tg_work_log__keep();
