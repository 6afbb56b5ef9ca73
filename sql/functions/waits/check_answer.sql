-- check_answer: refuse an answer that the question does not allow, and say what it allows.
--
-- Concurrency: none: what a wait allows never changes.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR002 too large.

create or replace function treadle.check_answer(
  p_wait   treadle.waits,
  p_value  jsonb,
  p_name   text default 'answer'
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
begin
  perform treadle.check_document(p_name, p_value);
  if p_wait.options is not null and not exists (
    select from jsonb_array_elements(p_wait.options) as options where options.value = p_value
  ) then
    perform treadle.refuse(
      format(
        '%s %s is none of %s', p_name, treadle.excerpt(p_value), left(p_wait.options::text, 1000)
      ),
      jsonb_build_object('argument', p_name, 'options', p_wait.options),
      'Use one of the options as it is written there.'
    );
  end if;

  v_problem := treadle.answer_problem(p_wait.schema, p_value, p_wait.schema, p_name);
  if v_problem is not null then
    perform treadle.refuse(
      format('%s does not fit the schema: %s', p_name, left(v_problem, 1000)),
      jsonb_build_object('argument', p_name, 'problem', v_problem, 'schema', p_wait.schema),
      'The schema is: ' || left(p_wait.schema::text, 2000)
    );
  end if;
end;
$$;

comment on function treadle.check_answer(treadle.waits, jsonb, text) is
'Internal: refuses what is not an option or does not fit the schema of a wait.';

revoke all on function treadle.check_answer(treadle.waits, jsonb, text) from public;
