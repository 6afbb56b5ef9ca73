-- check_wait: refuse a wait that could not be answered, or not expire as it says.
--
-- Concurrency: none.
-- Lock order:  none.
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
    ('options', p_wait.options is null or p_wait.schema is null, 'not come together with a schema'),
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
      'be deny for approvals only that have the option reject'
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
  -- An empty value is no value: the rule does not apply.
  where not rules.good
  limit 1;

  if found then
    perform treadle.refuse(
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

comment on function treadle.check_wait(treadle.waits) is
'Internal: refuses a wait that does not fit together.';

revoke all on function treadle.check_wait(treadle.waits) from public;
