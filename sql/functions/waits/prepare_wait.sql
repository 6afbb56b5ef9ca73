-- prepare_wait: turn the description of a wait into a checked row.
--
-- {"question": "...", "context": ..., "options": [...], "schema": {...}, "approvers": 2,
--  "expires_s": 3600, "on_expiry": "deny"} or {"event": "...", "key": "...", "expires_s": 3600}.
-- With approvers it is an approval, with the default options approve, reject and revise.
--
-- Raises:      TR001 invalid argument, TR002 too large.

-- expiry_of: return when a wait expires: after expires_s seconds or at expires_at; null for never.
--
-- A time in the past is accepted, since a repeated call may be late.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.expiry_of(p_given jsonb, p_now timestamptz)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_at timestamptz;
begin
  if p_given ? 'expires_s' and p_given ? 'expires_at' then
    raise data_exception using message = 'pass expires_s or expires_at, not both';
  elsif p_given ? 'expires_s' then
    if p_given -> 'expires_s' <= '0' or p_given -> 'expires_s' > '315360000' then
      raise data_exception using message = 'expires_s must be above 0 and at most ten years';
    end if;
    v_at := p_now + make_interval(secs => (p_given -> 'expires_s')::float8);
  else
    v_at := (p_given ->> 'expires_at')::timestamptz;
    if not treadle.is_valid_time(v_at) or v_at > p_now + interval '10 years' then
      raise data_exception using message = 'expires_at must be a time within ten years';
    end if;
  end if;
  return v_at;
exception
  when data_exception then
    perform treadle.raise_error(
      sqlerrm,
      jsonb_build_object(
        'argument', case when p_given ? 'expires_s' then 'expires_s' else 'expires_at' end
      ),
      'For example {"expires_s": 3600} or {"expires_at": "2030-01-31T12:00:00Z"}.'
    );
end;
$$;

-- check_wait_types: check the JSON types of the parts of a wait.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_wait_types(p_given jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text;
  v_must text;
begin
  select rules.name, rules.must
  into v_name, v_must
  from (
    values
    ('question', 'string', 'text'),
    ('event', 'string', 'text'),
    ('key', 'string', 'text'),
    ('options', 'array', 'a list'),
    ('schema', 'object', 'a JSON schema'),
    ('approvers', 'number', 'a number'),
    ('expires_s', 'number', 'a number of seconds'),
    ('expires_at', 'string', 'a time as text'),
    ('on_expiry', 'string', 'text')
  ) as rules (name, type, must)
  where jsonb_typeof(p_given -> rules.name) <> rules.type
  limit 1;

  if found then
    perform treadle.raise_error(
      format('%s must be %s, not %s', v_name, v_must, treadle.excerpt(p_given -> v_name)),
      jsonb_build_object('argument', v_name),
      format('Omit %s to use the default.', v_name)
    );
  end if;

  if p_given ->> 'approvers' !~ '^([1-9][0-9]?|100)$' then
    perform treadle.raise_error(
      format('approvers must be 1 to 100, not %s', treadle.excerpt(p_given -> 'approvers')),
      jsonb_build_object('argument', 'approvers'),
      'Pass how many people must give the same answer.'
    );
  end if;
end;
$$;

-- check_wait: check that a wait can be answered and can expire as configured.
--
-- Raises:      TR001 invalid argument, TR002 too large.
create or replace function treadle.check_wait(p_wait treadle.waits)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text;
  v_must text;
begin
  if p_wait.kind = 'event' then
    perform treadle.check_topic(p_wait.event, p_wait.event_key);
  end if;
  perform treadle.check_document('context', p_wait.context) where p_wait.context is not null;
  perform treadle.check_schema(p_wait.schema) where p_wait.schema is not null;

  select rules.name, rules.must
  into v_name, v_must
  from (
    values
    (
      'question',
      p_wait.kind = 'event'
      or coalesce(octet_length(btrim(p_wait.question)), 0) between 1 and 10000,
      'be a text of 1 to 10000 bytes'
    ),
    ('options', p_wait.options is null or p_wait.schema is null, 'not be combined with a schema'),
    (
      'options',
      jsonb_array_length(p_wait.options) between 1 and 100
      and octet_length(p_wait.options::text) <= 10000
      and not jsonb_path_exists(
        p_wait.options, 'strict $[*] ? (@.type() == "object" || @.type() == "array" || @ == null)'
      )
      and (
        select count(distinct options.value) = count(*)
        from jsonb_array_elements(p_wait.options) as options
      ),
      'be 1 to 100 different texts, numbers or booleans'
    ),
    (
      'on_expiry', p_wait.on_expiry in ('deny', 'fail', 'default', 'escalate'),
      'be deny, fail, default or escalate'
    ),
    (
      'on_expiry',
      p_wait.on_expiry <> 'deny' or coalesce(p_wait.options ? 'reject', false)
      and p_wait.kind = 'approval',
      'be deny only for approvals that have the option reject'
    ),
    (
      'default', p_wait.on_expiry <> 'default' or p_wait.default_answer is not null,
      'be given when on_expiry is default'
    ),
    (
      'default', p_wait.on_expiry = 'default' or coalesce(p_wait.default_answer, 'null') = 'null',
      'not be given unless on_expiry is default'
    )
  ) as rules (name, good, must)
  -- A null condition means that the value was not given, so the rule does not apply.
  where not rules.good
  limit 1;

  if found then
    perform treadle.raise_error(
      format('%s must %s', v_name, v_must),
      jsonb_build_object('argument', v_name),
      'For example {"question": "Ship it?", "approvers": 1, "expires_s": 600, "on_expiry": "deny"}.'
    );
  end if;
  if p_wait.on_expiry = 'default' then
    perform treadle.check_answer(p_wait, p_wait.default_answer, 'default');
  end if;
end;
$$;

create or replace function treadle.prepare_wait(p_wait jsonb, p_now timestamptz)
returns treadle.waits
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_expiry constant text[] := array['expires_s', 'expires_at', 'on_expiry', 'default'];
  v_given  jsonb;
  v_known  text[];
  v_other  text;
  v_wait   treadle.waits;
begin
  if jsonb_typeof(p_wait) is distinct from 'object' then
    perform treadle.raise_error(
      'a wait must be a JSON object',
      jsonb_build_object('argument', 'wait'),
      'For example {"question": "Ship it?", "options": ["yes", "no"]}.'
    );
  end if;
  select coalesce(jsonb_object_agg(given.key, given.value), '{}')
  into v_given
  from jsonb_each(p_wait) as given
  -- A null value counts as not given, except for default.
  where given.value <> 'null' or given.key = 'default';

  v_known := c_expiry || case
    when v_given ? 'event' then array['event', 'key']
    else array['question', 'context', 'options', 'schema', 'approvers']
  end;
  select keys.name
  into v_other
  from jsonb_object_keys(v_given) as keys (name)
  where keys.name <> all (v_known)
  limit 1;
  if found then
    perform treadle.raise_error(
      format('a wait for %s cannot have %s', case
        when v_given ? 'event' then 'an event' else 'an answer'
      end, quote_literal(treadle.excerpt_name(v_other))),
      jsonb_build_object('argument', treadle.excerpt_name(v_other)),
      'Allowed: ' || array_to_string(v_known, ', ')
    );
  end if;
  perform treadle.check_wait_types(v_given);

  v_wait := jsonb_populate_record(null::treadle.waits, v_given - 'expires_at');
  v_wait.event_key := case when v_given ? 'event' then coalesce(v_given ->> 'key', '') end;
  v_wait.kind := case
    when v_given ? 'event' then 'event'
    when v_given ? 'approvers' then 'approval'
    else 'question'
  end;
  v_wait.approvers := coalesce(v_wait.approvers, 1);
  if v_wait.kind = 'approval' and v_wait.schema is null then
    v_wait.options := coalesce(v_wait.options, '["approve", "reject", "revise"]');
  end if;
  v_wait.on_expiry := coalesce(v_wait.on_expiry, 'fail');
  v_wait.expires_at := treadle.expiry_of(v_given, p_now);
  v_wait.default_answer := v_given -> 'default';
  perform treadle.check_wait(v_wait);
  return v_wait;
end;
$$;
