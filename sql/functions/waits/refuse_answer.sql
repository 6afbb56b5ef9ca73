-- refuse_answer: say that an answer comes too late, and how the wait ended.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR102 it has ended.

create or replace function treadle.refuse_answer(p_wait treadle.waits)
returns void
language plpgsql
stable
set search_path = ''
as $$
begin
  perform treadle.refuse(
    format('wait %s is not open any more: %s', p_wait.id, case
      when p_wait.status = 'cancelled' then 'its task has ended'
      when p_wait.status = 'expired' then 'it expired'
      when p_wait.answered_by is null
        then format('it expired and got the answer %s', left(p_wait.answer::text, 100))
      else format('%s answered %s', p_wait.answered_by, left(p_wait.answer::text, 100))
    end),
    jsonb_build_object(
      'wait_id', p_wait.id, 'task_id', p_wait.task_id, 'status', p_wait.status,
      'value', p_wait.answer, 'by', p_wait.answered_by, 'at', p_wait.ended_at
    ),
    'Nothing was changed. See the view treadle.wait_details for who said what.',
    'TR102'
  );
end;
$$;

comment on function treadle.refuse_answer(treadle.waits) is
'Internal: raises with the decision that was made.';

revoke all on function treadle.refuse_answer(treadle.waits) from public;
