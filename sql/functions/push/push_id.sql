-- push_id: the task behind a queue id; a task of another queue has none.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR201 task not found.

create or replace function treadle.push_id(p_queue_id text)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id uuid;
begin
  if p_queue_id ~ '^queue-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
    select tasks.id
    into v_id
    from treadle.tasks
    where tasks.id = substr(p_queue_id, 7)::uuid and tasks.queue = 'push';
  end if;
  if v_id is null then
    perform treadle.refuse(
      format('there is no %s in the queue', coalesce(left(p_queue_id, 60), 'such entry')),
      jsonb_build_object('queue_id', left(p_queue_id, 200)),
      'What has ended is there until it is pruned.',
      'TR201'
    );
  end if;
  return v_id;
end;
$$;

comment on function treadle.push_id(text) is 'Internal: the task that a queue id names.';

revoke all on function treadle.push_id(text) from public;
