-- refuse_answer: say that an answer comes too late, and how the wait ended.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR102 it has ended.

create or replace function treadle.refuse_answer(p_wait treadle.waits)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  -- One of the options of the question is no text of the person who answered.
  v_answer text := case
    when p_wait.options @> jsonb_build_array(p_wait.answer) then left(p_wait.answer::text, 100)
    else treadle.excerpt(p_wait.answer)
  end;
begin
  perform treadle.refuse(
    format('wait %s is not open any more: %s', p_wait.id, case
      when p_wait.status = 'cancelled' then 'its task has ended'
      when p_wait.status = 'expired' then 'it expired'
      when p_wait.answered_by is null
        then format('it expired and got the answer %s', v_answer)
      else format('%s answered %s', p_wait.answered_by, v_answer)
    end),
    jsonb_build_object(
      'wait_id', p_wait.id, 'task_id', p_wait.task_id, 'status', p_wait.status,
      'by', p_wait.answered_by, 'at', p_wait.ended_at
    ),
    'Nothing was changed. See the view treadle.wait_details for who said what.',
    'TR102'
  );
end;
$$;

comment on function treadle.refuse_answer(treadle.waits) is
'Internal: raises with the decision that was made.';

revoke all on function treadle.refuse_answer(treadle.waits) from public;
