-- read_artifact: where the file of an artifact is, by artifact:<id>, an id, or a name in a task.
--
-- select * from treadle.read_artifact('report.pdf', task);
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR214 artifact not found.

create or replace function treadle.read_artifact(
  p_reference  text,
  p_task       uuid default null,
  out key text,
  out value jsonb
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_id  constant text := '^(?:artifact:)?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$';
  v_row treadle.artifacts := treadle.find_artifact(
    (regexp_match(p_reference, c_id))[1]::uuid, p_task, p_reference
  );
begin
  if v_row.id is null then
    perform treadle.no_artifact(p_reference);
  end if;
  key := v_row.key;
  value := treadle.artifact_value(v_row);
end;
$$;

comment on function treadle.read_artifact(text, uuid) is
'Where the file of an artifact is, its size and its hash; key is null when it lies elsewhere.';

revoke all on function treadle.read_artifact(text, uuid) from public;
grant execute on function treadle.read_artifact(text, uuid) to treadle_worker, treadle_producer;
