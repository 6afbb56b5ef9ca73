-- tg_work_log__append_only: reject changes to the log of work items.
--
-- Raises:      TR102 illegal transition.

create or replace function treadle.tg_work_log__append_only()
returns trigger
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.raise_error(
    format('the log of work items is append-only: %s is not allowed', lower(tg_op)),
    jsonb_build_object('table', tg_table_name, 'operation', lower(tg_op)),
    'Add a new row instead.',
    'TR102'
  );
  return null;
end;
$$;

comment on function treadle.tg_work_log__append_only() is
'Trigger: rejects updates and deletes of the log of work items.';
