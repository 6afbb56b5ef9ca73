-- push_spec: the spec of a task from the request of a submitter, checked.
--
-- Fields that are not known are left out, and so is what is empty, such as a timeout of 0. False is
-- not empty.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.push_spec(p_request jsonb)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_spec jsonb;
  v_name text;
  v_must text;
begin
  select jsonb_object_agg(given.key, given.value)
  into v_spec
  from jsonb_each(case when jsonb_typeof(p_request) = 'object' then p_request end) as given
  where
    given.key in (
      'prompt', 'model', 'timeout_seconds', 'session_id', 'project', 'env', 'thinking'
    )
    and given.value not in ('null', '""', '{}')
    and (given.key, given.value) <> ('timeout_seconds', '0');

  select rules.name, rules.must
  into v_name, v_must
  from (
    values
    ('prompt', 'string', 'be a text with something in it'),
    ('model', 'string', 'be a text'),
    ('session_id', 'string', 'be a text'),
    ('timeout_seconds', 'number', 'be a whole number of seconds, 1 to 31536000'),
    ('project', 'object', 'be a json object'),
    ('env', 'object', 'be a json object of texts'),
    ('thinking', 'boolean', 'be true or false')
  ) as rules (name, type, must)
  where
    jsonb_typeof(v_spec -> rules.name) <> rules.type
    or case rules.name
      when 'prompt' then coalesce(v_spec ->> 'prompt' !~ '[^[:space:]]', true)
      when 'timeout_seconds' then v_spec @? '$.timeout_seconds ? (@ < 1 || @ > 31536000)'
        or v_spec @? '$.timeout_seconds ? (@.floor() != @)'
      when 'env' then v_spec @? '$.env.* ? (@.type() != "string")'
    end
  limit 1;
  if found then
    perform treadle.refuse(
      format('%s must %s', v_name, v_must), jsonb_build_object('argument', v_name)
    );
  end if;
  return v_spec;
end;
$$;

comment on function treadle.push_spec(jsonb) is
'Internal: the fields of a request that go to the agent, checked.';

revoke all on function treadle.push_spec(jsonb) from public;
