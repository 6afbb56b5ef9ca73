-- 0028_more_actors: who let tasks go, changed how long things are kept, or let agents be nudged.

-- Replaced by functions that also take the name of who calls.
drop function if exists treadle.unhold_tasks(uuid[]);
drop function if exists treadle.let_go(uuid[], timestamptz);
drop function if exists treadle.set_retention(text, double precision);
drop function if exists treadle.allow_nudges(text, boolean, boolean);
