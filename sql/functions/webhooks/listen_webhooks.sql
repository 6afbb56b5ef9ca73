-- listen_webhooks: request NOTIFY when there are events for webhooks.
--
-- Concurrency: one row for all notifiers, updated every few minutes.
-- Lock order:  event_listeners.

create or replace function treadle.listen_webhooks()
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kinds text[];
  v_any   boolean;
begin
  select array_agg(distinct kinds.name), bool_or(right(kinds.name, 1) = '*')
  into v_kinds, v_any
  from treadle.webhooks
  cross join lateral unnest(webhooks.kinds) as kinds (name)
  where webhooks.status <> 'paused';
  if v_any then
    v_kinds := null;
  end if;
  if v_any is not null and not exists (
    select
    from treadle.event_listeners
    where
      event_listeners.name = 'notifier'
      and event_listeners.listening_until > clock_timestamp() + interval '5 min'
      and event_listeners.kinds is not distinct from v_kinds
  ) then
    perform treadle.listen_events('notifier', 600, v_kinds);
  end if;
end;
$$;

comment on function treadle.listen_webhooks() is
'Request notifications for the events that webhooks subscribe to; repeat the call regularly.';

grant execute on function treadle.listen_webhooks() to treadle_operator;
