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

-- raise_unknown_name: raise the error for an unknown queue or type, with the name that was probably
-- meant.
--
-- Only names of a similar length are compared, and at most 200 of them.
--
-- Raises:      TR202 unknown queue, TR203 unknown type.
create or replace function treadle.raise_unknown_name(
  p_argument  text,
  p_name      text,
  p_known     text[],
  p_hint      text
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_near text;
begin
  select near.name
  into v_near
  from (
    select known.name, treadle.edit_distance(lower(p_name), lower(known.name)) as distance
    from unnest(p_known) as known (name)
    where abs(char_length(known.name) - char_length(p_name)) <= 2
    limit 200
  ) as near
  where near.distance <= greatest(1, least(2, char_length(p_name) / 3))
  order by near.distance, near.name
  limit 1;

  perform treadle.raise_error(
    format(
      'there is no %s %s', case p_argument when 'type' then 'task type' else p_argument end,
      coalesce(quote_literal(left(p_name, 60)), 'null')
    ),
    jsonb_build_object('argument', p_argument, p_argument, left(p_name, 200)),
    case
      when v_near is not null then format('Did you mean %L? ', v_near)
      else format('Known %ss: %s. ', p_argument, array_to_string(p_known[1:10], ', '))
    end || p_hint,
    case p_argument when 'queue' then 'TR202' else 'TR203' end
  );
end;
$$;

create or replace function treadle.check_names(p_queue text, p_type text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text;
begin
  if treadle.are_names(p_queue, p_type) then
    return;
  end if;

  if not exists (select from treadle.queues where queues.name = p_queue) then
    v_name := case when p_queue ~ '^[a-z0-9_.-]{1,48}$' then p_queue else 'name' end;
    perform treadle.raise_unknown_name(
      'queue', p_queue, array(select queues.name from treadle.queues order by 1),
      format(
        'To create a queue: treadle queues create %s, app.queue(%L) in code, or '
        'select treadle.define_queue(%L)', v_name, v_name, v_name
      )
    );
  end if;

  if not exists (select from treadle.task_types where task_types.name = p_type) then
    perform treadle.raise_unknown_name(
      'type', p_type, array(select task_types.name from treadle.task_types order by 1),
      'Start a worker that handles it, or call treadle.define_type(''name'')'
    );
  end if;
end;
$$;
