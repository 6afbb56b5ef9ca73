-- tg_work_log__keep: the log of work items stays as it was written.
--
-- Raises:      TR102 illegal transition.

create or replace function treadle.tg_work_log__keep()
returns trigger
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.refuse(
    format('the log of work items is append-only: %s is not possible', lower(tg_op)),
    jsonb_build_object('table', tg_table_name, 'operation', lower(tg_op)),
    'What happens next is written below it.',
    'TR102'
  );
  return null;
end;
$$;

comment on function treadle.tg_work_log__keep() is
'Trigger: refuses to change or remove what happened to work items.';
