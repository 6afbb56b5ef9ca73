-- check_step: refuse a step that could not be stored, or not be handed over again.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR002 too large.

create or replace function treadle.check_step(
  p_name        text,
  p_output      jsonb default null,
  p_input_hash  text default null,
  p_started_at  timestamptz default null
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_bytes constant bigint := 16777216;
  v_found record;
begin
  if p_name is null or octet_length(p_name) not between 1 and 200 then
    perform treadle.refuse(
      format('a step needs a name of 1 to 200 bytes, not %s', coalesce(octet_length(p_name), 0)),
      jsonb_build_object('argument', 'name'),
      'Name it for what it does: "outline", "draft 2".'
    );
  end if;
  if octet_length(p_input_hash) > 200 or not treadle.is_moment(p_started_at) then
    perform treadle.refuse(
      format(
        'step %L: input_hash may have 200 bytes, started_at must be a moment from 1970 to 9999',
        left(p_name, 60)
      ),
      jsonb_build_object('argument', 'input_hash', 'step', p_name),
      'Pass a hash of the input, not the input.'
    );
  end if;

  v_found := treadle.json_problem(p_output, c_bytes);
  if v_found.problem is not null then
    perform treadle.refuse(
      format('the output of step %L %s', left(p_name, 60), v_found.problem),
      jsonb_build_object(
        'argument', 'output', 'step', p_name, 'bytes', v_found.bytes, 'max_bytes', c_bytes
      ),
      'Store the data elsewhere, as an artifact, and return a reference.',
      case when v_found.bytes > c_bytes then 'TR002' else 'TR001' end
    );
  end if;
end;
$$;

comment on function treadle.check_step(text, jsonb, text, timestamptz) is
'Internal: refuses a step with a bad name or an output that is too large.';

revoke all on function treadle.check_step(text, jsonb, text, timestamptz) from public;
