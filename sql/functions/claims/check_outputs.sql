-- check_outputs: refuse outputs that do not pair up with their tasks or are too large to keep.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR002 too large.

create or replace function treadle.check_outputs(p_ids uuid[], p_outputs jsonb[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_max constant integer := 16777216;
  v_bytes integer;
  v_id    uuid;
begin
  perform treadle.check_pairs(p_ids, null, 'outputs', cardinality(p_outputs));
  select pg_column_size(given.output), given.id
  into v_bytes, v_id
  from unnest(p_ids, p_outputs) as given (id, output)
  where pg_column_size(given.output) > c_max
  limit 1;
  if found then
    perform treadle.refuse(
      format('the output of task %s has %s bytes, %s are allowed', v_id, v_bytes, c_max),
      jsonb_build_object('task_id', v_id, 'bytes', v_bytes, 'max_bytes', c_max),
      'Store the data elsewhere and return a reference to it.',
      'TR002'
    );
  end if;
end;
$$;

comment on function treadle.check_outputs(uuid[], jsonb[]) is
'Internal: one output for each task, none above 16 MiB.';

revoke all on function treadle.check_outputs(uuid[], jsonb[]) from public;
