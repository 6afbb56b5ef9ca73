-- prepare_wait: turn what a task wants to wait for into a checked row.
--
-- {"question": "...", "context": ..., "options": [...], "schema": {...}, "approvers": 2,
--  "expires_s": 3600, "on_expiry": "deny"} or {"event": "...", "key": "...", "expires_s": 3600}.
-- With approvers it is an approval, which has the options approve, reject and revise by default.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR002 too large.

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
    perform treadle.refuse(
      'a wait must be a json object',
      jsonb_build_object('argument', 'wait'),
      'For example {"question": "Ship it?", "options": ["yes", "no"]}.'
    );
  end if;
  select coalesce(jsonb_object_agg(given.key, given.value), '{}')
  into v_given
  from jsonb_each(p_wait) as given
  -- What is null is not given, but a default may be null.
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
    perform treadle.refuse(
      format('a wait for %s cannot have %s', case
        when v_given ? 'event' then 'an event' else 'an answer'
      end, quote_literal(treadle.excerpt_name(v_other))),
      jsonb_build_object('argument', treadle.excerpt_name(v_other)),
      'It can have: ' || array_to_string(v_known, ', ')
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

comment on function treadle.prepare_wait(jsonb, timestamptz) is
'Internal: checks what a task wants to wait for and fills in the defaults.';

revoke all on function treadle.prepare_wait(jsonb, timestamptz) from public;
