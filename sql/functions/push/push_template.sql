-- push_template: prepare the task of a schedule for queue `push` like a submission.
--
-- The default type is prompt, and its spec is checked as for a submission. The queue is created if
-- it is missing.
--
-- Concurrency: reads only once the queue exists.
-- Lock order:  as ensure_push_queue.
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
  perform treadle.ensure_push_queue();
  if v_task ->> 'type' = 'prompt' then
    v_task := v_task || jsonb_build_object('spec', treadle.push_spec(v_task -> 'spec'));
  end if;
  return v_task;
end;
$$;
