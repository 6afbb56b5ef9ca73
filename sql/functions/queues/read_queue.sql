-- read_queue: return the settings of a queue, and the actor that paused it.
--
-- Raises:      TR202 unknown queue.

create or replace function treadle.read_queue(p_queue text)
returns table (
  queue text, paused boolean, paused_at timestamptz, paused_by text, paused_reason text,
  priority smallint, max_attempts smallint, timeout_s double precision, ageing_rate numeric,
  retry jsonb, max_spec_bytes integer, audit text, max_depth integer, fair boolean,
  assignment text, hold boolean, on_lease_expiry text, created_at timestamptz
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  select
    queues.name, queues.paused_at is not null, queues.paused_at, queues.paused_by,
    queues.paused_reason, queues.priority, queues.max_attempts, queues.timeout_s,
    queues.ageing_rate, queues.retry, queues.max_spec_bytes, queues.audit, queues.max_depth,
    queues.fair, queues.assignment, queues.hold, queues.on_lease_expiry, queues.created_at
  from treadle.queues
  where queues.name = p_queue;
  if not found then
    perform treadle.check_names(p_queue, null);
  end if;
end;
$$;

comment on function treadle.read_queue(text) is 'The settings of a queue.';

grant execute on function treadle.read_queue(text) to
treadle_observer, treadle_operator;
