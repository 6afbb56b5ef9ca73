-- read_webhook: return the next events for a webhook, in order, and skip those it does not
-- subscribe to.
--
-- Concurrency: the lease excludes other notifiers; the cursor moves only past skipped events.
-- Lock order:  webhooks, readers.

-- lock_webhook: lock a webhook for the holder of its lease, and renew the lease.
--
-- Concurrency: an expired lease that no other notifier has taken is still valid; the token decides.
-- Lock order:  webhooks.
create or replace function treadle.lock_webhook(
  p_name     text,
  p_token    uuid,
  p_lease_s  double precision default 60
)
returns treadle.webhooks
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
update treadle.webhooks
set
  lease_until = greatest(
    webhooks.lease_until, treadle.clock() + make_interval(secs => p_lease_s)
  )
where webhooks.name = p_name and webhooks.token = p_token
returning webhooks.*
$$;

-- webhook_wants_event: return whether a webhook subscribes to an event.
create or replace function treadle.webhook_wants_event(
  p_event treadle.events, p_kinds text[], p_filter jsonb
)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
select
  exists (
    select
    from unnest(p_kinds) as kinds (pattern)
    where
      kinds.pattern = (p_event).kind
      or (
        right(kinds.pattern, 1) = '*'
        and starts_with((p_event).kind, left(kinds.pattern, -1))
      )
  )
  and (p_filter = '{}' or treadle.event_document(p_event) @> p_filter)
$$;

create or replace function treadle.read_webhook(
  p_name       text,
  p_token      uuid,
  p_limit      integer default 100,
  p_max_bytes  integer default 262144
)
returns table (xid xid8, id bigint, kind text, document text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_scan  constant integer := 500;
  v_hook  treadle.webhooks := treadle.lock_webhook(p_name, p_token);
  v_place treadle.event_readers;
  v_event treadle.events;
  v_found integer := 0;
  v_seen  integer;
  v_bytes bigint := 0;
begin
  select event_readers.* into v_place
  from treadle.event_readers
  where event_readers.name = 'webhook:' || v_hook.name
  for no key update;
  for v_round in 1..20 loop
    exit when v_hook.status = 'paused' or v_place.name is null or v_found > 0;
    exit when v_seen < c_scan;
    v_seen := 0;
    for v_event in select next.* from treadle.next_events(v_place.xid, v_place.id, c_scan) as next
    loop
      v_seen := v_seen + 1;
      if treadle.webhook_wants_event(v_event, v_hook.kinds, v_hook.filter) then
        document := treadle.event_document(v_event)::text;
        v_bytes := v_bytes + octet_length(document);
        exit when v_found > 0 and v_bytes > p_max_bytes;
        xid := v_event.xid;
        id := v_event.id;
        kind := v_event.kind;
        return next;
        v_found := v_found + 1;
        exit when v_found >= p_limit;
      elsif v_found = 0 then
        v_place.xid := v_event.xid;
        v_place.id := v_event.id;
      end if;
    end loop;
  end loop;
  update treadle.event_readers
  set xid = v_place.xid, id = v_place.id, read_at = treadle.clock()
  where
    event_readers.name = v_place.name
    and (event_readers.xid, event_readers.id) < (v_place.xid, v_place.id);
end;
$$;

comment on function treadle.read_webhook(text, uuid, integer, integer) is
'The events to send to a leased webhook; nothing if the lease is lost.';

grant execute on function treadle.read_webhook(text, uuid, integer, integer) to treadle_operator;
