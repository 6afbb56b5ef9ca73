-- wait_answer: the answer of a wait as the task gets it; null while it is open.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.wait_answer(p_wait treadle.waits)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'status', p_wait.status, 'value', p_wait.answer, 'by', p_wait.answered_by,
    'note', p_wait.note, 'at', p_wait.ended_at
  )
  where p_wait.status in ('answered', 'expired')
$$;

comment on function treadle.wait_answer(treadle.waits) is
'Internal: status, value, by, note and at of a wait that has ended.';

revoke all on function treadle.wait_answer(treadle.waits) from public;
