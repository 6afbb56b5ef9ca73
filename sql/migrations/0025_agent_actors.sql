-- 0025_agent_actors: the event of an agent's new status says who gave it.

drop function if exists treadle.set_agent_status(text, text);
