-- check_names: check that a queue and a type exist before a task uses them.
--
-- A task with a misspelled name would wait forever, because no agent serves it.
--
-- Raises:      TR202 unknown queue, TR203 unknown type.

-- are_names: return whether a queue and a type exist.
--
-- Written in plpgsql, which caches its plans: it is called for every enqueued task.
create or replace function treadle.are_names(p_queue text, p_type text)
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return
    exists (select from treadle.queues where queues.name = p_queue)
    and exists (select from treadle.task_types where task_types.name = p_type);
end;
$$;

create or replace function treadle.check_names(p_queue text, p_type text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if treadle.are_names(p_queue, p_type) then
    return;
  end if;

  if not exists (select from treadle.queues where queues.name = p_queue) then
    perform treadle.raise_error(
      format('there is no queue %s', coalesce(quote_literal(left(p_queue, 60)), 'null')),
      jsonb_build_object('argument', 'queue', 'queue', left(p_queue, 200)),
      format(
        'Known queues: %s. To create one: select treadle.define_queue(''name'')',
        array_to_string(array(select queues.name from treadle.queues order by 1 limit 10), ', ')
      ),
      'TR202'
    );
  end if;

  if not exists (select from treadle.task_types where task_types.name = p_type) then
    perform treadle.raise_error(
      format('there is no task type %s', coalesce(quote_literal(left(p_type, 60)), 'null')),
      jsonb_build_object('argument', 'type', 'type', left(p_type, 200)),
      format(
        'Known types: %s. Start a worker that handles it, or call treadle.define_type(''name'')',
        array_to_string(
          array(select task_types.name from treadle.task_types order by 1 limit 10), ', '
        )
      ),
      'TR203'
    );
  end if;
end;
$$;
