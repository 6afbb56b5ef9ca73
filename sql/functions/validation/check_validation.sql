-- check_validation: refuse validators that could not be called.
--
-- A list like [{"validator": "regex", "pattern": "^ok"}]. Of the built-in ones the settings are
-- known; what others take is up to the code behind their name. Nothing here is ever executed.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR002 too large.

create or replace function treadle.check_validation(p_validation jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
begin
  perform treadle.check_document('validation', p_validation, 262144);
  if jsonb_typeof(p_validation) <> 'array' then
    v_problem := 'it must be a list';
  elsif jsonb_array_length(p_validation) > 20 then
    v_problem := 'it has more than 20 validators';
  else
    select treadle.validator_problem(given.settings)
    into v_problem
    from jsonb_array_elements(p_validation) as given (settings)
    where treadle.validator_problem(given.settings) is not null
    limit 1;
  end if;

  if v_problem is not null then
    perform treadle.refuse(
      format('the validation cannot be used: %s', v_problem),
      jsonb_build_object('argument', 'validation', 'problem', v_problem),
      'For example [{"validator": "regex", "pattern": "^ok"}]; built in are json_schema (schema), '
      'regex (pattern), test_pass (name), llm_judge (criteria) and none; timeout_s goes with all.'
    );
  end if;
end;
$$;

comment on function treadle.check_validation(jsonb) is
'Internal: refuses a malformed list of validators.';

revoke all on function treadle.check_validation(jsonb) from public;
