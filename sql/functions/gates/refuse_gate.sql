-- refuse_gate: the error for a gate that is not defined.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR209 unknown gate.

create or replace function treadle.refuse_gate(p_key text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.refuse(
    format('there is no gate %s', coalesce(quote_literal(left(p_key, 60)), 'null')),
    jsonb_build_object('argument', 'gates', 'gate', left(p_key, 200)),
    format(
      'Known: %s. Make one: select treadle.define_gate(''name'')',
      coalesce(
        nullif(
          array_to_string(
            array(
              select gates.key from treadle.gates
              where gates.key not like 'over:%'
              order by gates.key
              limit 10
            ),
            ', '
          ),
          ''
        ),
        'none'
      )
    ),
    'TR209'
  );
end;
$$;

comment on function treadle.refuse_gate(text) is
'Internal: says which gates there are.';

revoke all on function treadle.refuse_gate(text) from public;
