-- trigger_from: the row of a trigger with new settings over the old ones.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.trigger_from(
  p_old       treadle.triggers,
  p_name      text,
  p_settings  jsonb,
  p_actor     text
)
returns treadle.triggers
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new treadle.triggers := p_old;
  v_now timestamptz := treadle.clock();
begin
  perform treadle.check_settings(
    p_settings,
    array[
      'on', 'filter', 'task', 'dag', 'failure_rate', 'max_depth', 'max_per_hour', 'description'
    ]
  );
  v_new.id := coalesce(p_old.id, treadle.uuidv7());
  v_new.name := p_name;
  v_new.created_by := coalesce(p_old.created_by, p_actor);
  v_new.created_at := coalesce(p_old.created_at, v_now);
  v_new.active_at := coalesce(p_old.active_at, v_now);
  v_new.updated_at := v_now;
  v_new.failure_rate := coalesce(p_settings -> 'failure_rate', p_old.failure_rate);
  if p_settings ?| array['task', 'dag'] then
    v_new.template := treadle.without_nulls(
      jsonb_build_object('task', p_settings -> 'task', 'dag', p_settings -> 'dag')
    );
  end if;
  v_new.on_event := coalesce(
    case when v_new.failure_rate is not null then 'type.failing' end,
    p_settings ->> 'on', p_old.on_event
  );
  v_new.filter := coalesce(
    case when v_new.failure_rate is not null then jsonb_build_object('key', p_name) end,
    p_settings -> 'filter', p_old.filter, '{}'
  );
  if p_settings ? 'description' then
    v_new.description := p_settings ->> 'description';
  end if;
  v_new.max_depth := coalesce((p_settings ->> 'max_depth')::smallint, p_old.max_depth, 5);
  v_new.max_per_hour := case
    when p_settings ? 'max_per_hour' then (p_settings ->> 'max_per_hour')::integer
    when p_old.id is not null then p_old.max_per_hour
    else 1000
  end;
  return v_new;
exception
  when data_exception then
    perform treadle.refuse(
      format('this trigger cannot be made: %s', sqlerrm),
      jsonb_build_object('argument', 'settings'), 'max_depth and max_per_hour are numbers.'
    );
end;
$$;

comment on function treadle.trigger_from(treadle.triggers, text, jsonb, text) is
'Internal: a trigger as it will be.';

revoke all on function treadle.trigger_from(treadle.triggers, text, jsonb, text) from public;
