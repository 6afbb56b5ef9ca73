-- raise_invalid_transition: raise the error for an illegal change of state, with the allowed
-- states.
--
-- Raises:      TR102 illegal transition, TR201 task not found.

create or replace function treadle.raise_invalid_transition(
  p_id  uuid,
  p_to  text,
  p_by  text default null
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status text;
begin
  select tasks.status into v_status from treadle.tasks where tasks.id = p_id;
  if not found then
    perform treadle.raise_error(
      format('there is no task %s', coalesce(p_id::text, 'null')),
      jsonb_build_object('task_id', p_id),
      'To list tasks: select * from treadle.task_details order by id desc limit 20',
      'TR201'
    );
  end if;

  perform treadle.raise_error(
    format(
      'task %s is %s and cannot become %s%s', p_id, v_status, p_to, coalesce(' by ' || p_by, '')
    ),
    jsonb_build_object(
      'task_id', p_id, 'from', v_status, 'to', p_to,
      'allowed', (
        select coalesce(jsonb_agg(distinct transitions.to_status), '[]')
        from treadle.transitions
        where
          transitions.from_status = v_status
          and (p_by is null or transitions.by = p_by)
      )
    ),
    'See the view treadle.transitions for the allowed changes.',
    'TR102'
  );
end;
$$;
