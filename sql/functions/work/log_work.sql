-- log_work: record a change of a work item and emit an event.
--
-- Concurrency: the caller has locked the task, so that the rows of an item are in order. Only
-- inserts.

create or replace function treadle.log_work(
  p_task         uuid,
  p_actor        text,
  p_from         text,
  p_to           text,
  p_agent        text,
  p_note         text,
  p_handed_over  boolean default false,
  p_kind         text default null,
  p_at           timestamptz default null
)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  with logged as (
    insert into treadle.work_log (
      task_id, at, actor, from_status, to_status, agent, handed_over, note
    )
    values (
      p_task, coalesce(p_at, treadle.clock()), coalesce(p_actor, session_user), p_from, p_to,
      p_agent, p_handed_over, p_note
    )
    returning work_log.*
  )

  insert into treadle.events (at, kind, task_id, queue, actor, data)
  select
    logged.at,
    'work.' || coalesce(
      p_kind,
      case when p_from = p_to then 'updated' when p_to = 'in_progress' then 'started' else p_to end
    ),
    p_task, 'work', logged.actor,
    jsonb_strip_nulls(
      jsonb_build_object(
        'from', p_from, 'to', p_to, 'agent', p_agent, 'note', left(p_note, 500)
      )
    )
  from logged;
$$;
