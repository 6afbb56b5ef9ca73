-- settle_dispatch: do to a task what the outcome of its submission means.
--
-- Concurrency: the caller holds the task; the fence is the claim token.
-- Lock order:  as complete_tasks, fail_tasks and release_tasks.
-- Raises:      TR001 invalid argument, TR002 too large.

create or replace function treadle.settle_dispatch(
  p_task     uuid,
  p_token    uuid,
  p_outcome  text,
  p_error    text,
  p_output   jsonb
)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_verdict text;
  v_error   text := p_error;
  v_class   text := case
    when p_outcome in ('error', 'unreachable', 'unsure') then 'unavailable'
    when p_outcome in ('lost', 'silent') then 'crash'
    when p_outcome = 'refused' then 'refused'
    else 'error'
  end;
  v_action  text := case
    when p_outcome in ('failed', 'refused') then 'fail'
    when p_outcome = 'cancelled' then 'cancel'
    when p_outcome in ('error', 'unreachable', 'unsure', 'lost', 'silent') then 'retry'
  end;
begin
  if p_outcome = 'completed' then
    v_verdict := (treadle.complete_tasks(array[p_task], array[p_token], array[p_output])).verdict;
    if v_verdict <> 'report_required' then
      return v_verdict;
    end if;
    -- Nobody is there to be asked for one.
    v_error := 'the type requires a decision report';
    v_class := 'invalid_output';
    v_action := 'fail';
  elsif p_outcome = 'busy' then
    v_verdict := (treadle.release_tasks(array[p_task], array[p_token])).verdict;
    update treadle.tasks
    set rank = treadle.push_rank(tasks, treadle.clock())
    where tasks.id = p_task and v_verdict = 'released';
    return v_verdict;
  elsif p_outcome = 'superseded' then
    return 'stale';
  elsif v_action is null then
    perform treadle.refuse(
      format('a submission cannot end as %L', left(p_outcome, 60)),
      jsonb_build_object('argument', 'outcome')
    );
  end if;
  select ended.verdict
  into v_verdict
  from treadle.fail_tasks(
    array[p_task], array[p_token], array[v_class], array[v_error], array[v_action],
    array[0::double precision]
  ) as ended;
  return v_verdict;
end;
$$;

comment on function treadle.settle_dispatch(uuid, uuid, text, text, jsonb) is
'Internal: completes, fails, cancels or releases the task of a submission; the verdict on that.';

revoke all on function treadle.settle_dispatch(uuid, uuid, text, text, jsonb) from public;
