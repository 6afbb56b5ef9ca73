-- remove_trigger: remove a trigger and the record of its fires; its tasks stay.
--
-- Concurrency: waits for a session that fires it.
-- Lock order:  triggers, trigger_fires.
-- Raises:      TR212 unknown trigger.

create or replace function treadle.remove_trigger(p_name text, p_actor text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_trigger treadle.triggers := treadle.find_trigger(p_name);
begin
  delete from treadle.triggers where triggers.id = v_trigger.id;
  delete from treadle.trigger_fires where trigger_fires.trigger_id = v_trigger.id;
  insert into treadle.events (at, kind, actor, key, data)
  values (
    treadle.clock(), 'trigger.removed', coalesce(p_actor, session_user), p_name,
    jsonb_build_object('on', v_trigger.on_event, 'fired', v_trigger.fired)
  );
end;
$$;

comment on function treadle.remove_trigger(text, text) is
'Remove a trigger; the tasks that it created stay.';

grant execute on function treadle.remove_trigger(text, text) to treadle_operator;
