-- push_template: the task of a schedule for queue `push`, as if it had been submitted.
--
-- Its type is prompt where it says no other, and the spec of that is checked as a submission is.
-- The queue is made where it is missing.
--
-- Concurrency: reads only, once the queue is there.
-- Lock order:  as open_push.
-- Raises:      TR001 invalid argument.

create or replace function treadle.push_template(p_task jsonb)
returns jsonb
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task jsonb := '{"type": "prompt"}' || p_task;
begin
  perform treadle.open_push();
  if v_task ->> 'type' = 'prompt' then
    v_task := v_task || jsonb_build_object('spec', treadle.push_spec(v_task -> 'spec'));
  end if;
  return v_task;
end;
$$;
