-- 0034_no_rows_from_callers: functions that act for the owner take an id, not a row that a caller
-- could make up.

drop view if exists treadle.stuck;
drop function if exists treadle.lane_trouble(treadle.lanes);
