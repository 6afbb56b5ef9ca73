-- 0023_dispatch_rest: agents that did not take a task rest; schedules tell how full the queue was.

-- Whether the agent was sent the same before and may have it.
alter type treadle.dispatch_target add attribute again boolean;

-- Replaced by functions that also take how long an agent rests, or return the depth.
drop function if exists treadle.dispatch_targets();
drop function if exists treadle.dispatch_task(
  text, uuid, uuid, double precision, double precision
);
drop function if exists treadle.fire_schedule(uuid, bigint, timestamptz[], timestamptz);
