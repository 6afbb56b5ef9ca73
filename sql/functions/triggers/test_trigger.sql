-- test_trigger: show what a trigger would enqueue for an event, without enqueuing it.
--
-- The event is an existing one, or a sample in the form that filters see: {"kind":
-- "task.completed", "type": "crawl", "output": {"text": "..."}}.
-- Raises:      TR001 invalid argument, TR212 unknown trigger.

create or replace function treadle.test_trigger(
  p_name    text,
  p_event   bigint default null,
  p_sample  jsonb default null
)
returns jsonb
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_trigger treadle.triggers := treadle.find_trigger(p_name);
  v_event   treadle.events;
  v_facts   jsonb := p_sample;
  v_problem text;
  v_makes   jsonb;
begin
  if num_nonnulls(p_event, p_sample) <> 1 or jsonb_typeof(p_sample) <> 'object' then
    perform treadle.raise_error(
      'pass the id of an event, or a sample as a JSON object',
      jsonb_build_object('argument', 'event'),
      'For example {"kind": "webhook.received", "key": "stripe", "data": {}}.'
    );
  end if;
  if p_event is not null then
    v_event := treadle.find_event(p_event);
    v_facts := treadle.event_json(v_event);
  end if;

  v_problem := case
    when v_facts ->> 'kind' is distinct from v_trigger.on_event
      then format('it fires on %s', v_trigger.on_event)
    when not v_facts @> v_trigger.filter then 'the event does not match the filter'
    else treadle.fire_limit(v_trigger, treadle.trigger_depth(v_event) + 1, treadle.clock())
  end;
  if v_problem is null then
    begin
      v_makes := treadle.fill_template(v_trigger.template, v_facts);
      perform treadle.enqueue_filled_template(v_trigger, v_makes);
      raise exception using errcode = 'TRDRY';
    exception
      when sqlstate 'TRDRY' then null;
      when others then v_problem := treadle.mask_text(sqlerrm);
    end;
  end if;
  return jsonb_build_object(
    'trigger', p_name, 'fires', v_problem is null, 'problem', v_problem, 'makes', v_makes,
    'paused', v_trigger.paused_at is not null, 'event', v_facts
  );
end;
$$;

comment on function treadle.test_trigger(text, bigint, jsonb) is
'Whether a trigger would fire on an event, what it would enqueue, or why not.';

grant execute on function treadle.test_trigger(text, bigint, jsonb) to treadle_operator;
