-- tg_dead_letter_decisions__keep: what was decided stays as it was written.
--
-- Raises:      TR102 illegal transition.

create or replace function treadle.tg_dead_letter_decisions__keep()
returns trigger
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.refuse(
    format('decisions about dead letters are kept: %s is not possible', lower(tg_op)),
    jsonb_build_object('table', tg_table_name, 'operation', lower(tg_op)),
    'Decide again: what comes later stands beside it.',
    'TR102'
  );
  return null;
end;
$$;

comment on function treadle.tg_dead_letter_decisions__keep() is
'Trigger: refuses to change or remove a decision.';
