-- refuse_work: say that a work item cannot go where it was sent, and where it can.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR102 illegal transition.

create or replace function treadle.refuse_work(
  p_id      uuid,
  p_from    text,
  p_to      text,
  p_reason  text default null
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_allowed text[] := array(
    select work_transitions.to_status
    from treadle.work_transitions
    where work_transitions.from_status = p_from
    order by 1
  );
begin
  perform treadle.refuse(
    coalesce(
      p_reason, format('work item %s is %s and cannot become %s', p_id, p_from, p_to)
    ),
    jsonb_build_object(
      'work_item_id', p_id, 'from', p_from, 'to', p_to, 'allowed', v_allowed
    ),
    case
      when v_allowed = '{}' then format('An item that is %s stays so.', p_from)
      else 'From here it can become ' || array_to_string(v_allowed, ', ') || '.'
    end,
    'TR102'
  );
end;
$$;

comment on function treadle.refuse_work(uuid, text, text, text) is
'Internal: raises with the state of a work item and the states it may go to.';

revoke all on function treadle.refuse_work(uuid, text, text, text) from public;
