-- 0029_last_at: the last time of a schedule is also that of a run by hand.

comment on column treadle.schedules.last_at is
'The last nominal time that was dealt with, or the moment of a run by hand since.';
