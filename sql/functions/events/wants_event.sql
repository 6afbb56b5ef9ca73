-- wants_event: whether somebody waits for events of a kind that are not written for history alone.
--
-- With a type and a queue, whether for such a task. A webhook or a listener for everything does not
-- count: it gets what is written anyway. Nor do the listeners of triggers and webhooks themselves.
-- In plpgsql, which keeps its plan.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.wants_event(
  p_kind   text,
  p_type   text default null,
  p_queue  text default null
)
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select from treadle.triggers
    where
      triggers.on_event = p_kind and triggers.paused_at is null
      and (p_type is null or coalesce(triggers.filter ->> 'type', p_type) = p_type)
      and (p_queue is null or coalesce(triggers.filter ->> 'queue', p_queue) = p_queue)
  ) or exists (
    select from treadle.webhooks
    cross join unnest(webhooks.kinds) as kinds (pattern)
    -- Also while it is paused: its events wait for it.
    where
      kinds.pattern = p_kind
      or (kinds.pattern like '_%*' and starts_with(p_kind, left(kinds.pattern, -1)))
  ) or exists (
    select from treadle.event_listeners
    where
      p_kind = any (event_listeners.kinds)
      and event_listeners.listening_until > clock_timestamp()
      and event_listeners.name not in ('triggers', 'notifier')
  );
end;
$$;

comment on function treadle.wants_event(text, text, text) is
'Internal: whether a trigger, a webhook or a listener is there for events of this kind.';

revoke all on function treadle.wants_event(text, text, text) from public;
