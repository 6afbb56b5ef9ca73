-- try_cancel_push: cancel an entry of queue `push`; if it has ended, that is returned as a problem.
--
-- Concurrency: as cancel_push.
-- Lock order:  as cancel_push.
-- Raises:      TR201 task not found.

create or replace function treadle.try_cancel_push(
  p_queue_id  text,
  p_reason    text default null,
  p_actor     text default null
)
returns table (state text, problem jsonb)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_detail text;
  v_hint   text;
begin
  return query select treadle.cancel_push(p_queue_id, p_reason, p_actor), null::jsonb;
exception
  when sqlstate 'TR102' then
    get stacked diagnostics v_detail = pg_exception_detail, v_hint = pg_exception_hint;
    problem := treadle.problem(sqlstate, sqlerrm, v_detail, v_hint);
    return next;
end;
$$;

comment on function treadle.try_cancel_push(text, text, text) is
'Cancel an entry of queue push; returns its state, or the problem if it has ended.';

grant execute on function treadle.try_cancel_push(text, text, text) to
treadle_producer, treadle_operator;
