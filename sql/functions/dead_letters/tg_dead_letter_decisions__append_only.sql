-- tg_dead_letter_decisions__append_only: reject changes to recorded decisions.
--
-- Raises:      TR102 illegal transition.

create or replace function treadle.tg_dead_letter_decisions__append_only()
returns trigger
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.raise_error(
    format('decisions about dead letters are append-only: %s is not allowed', lower(tg_op)),
    jsonb_build_object('table', tg_table_name, 'operation', lower(tg_op)),
    'Record a new decision instead; the earlier one stays.',
    'TR102'
  );
  return null;
end;
$$;

comment on function treadle.tg_dead_letter_decisions__append_only() is
'Trigger: rejects updates and deletes of recorded decisions.';
