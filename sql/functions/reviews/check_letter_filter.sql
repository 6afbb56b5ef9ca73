-- check_letter_filter: refuse a filter of dead letters that is empty, unknown or malformed.
--
-- Besides what a filter of tasks knows: fingerprint, dead_before, dead_after, poison, escalated.
-- All of them are {"status": "dead_lettered"}.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR203 unknown type.

create or replace function treadle.check_letter_filter(p_filter jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_texts constant text[] := array['fingerprint', 'dead_before', 'dead_after'];
  c_flags constant text[] := array['poison', 'escalated'];
  c_keys  constant text[] := treadle.filter_keys() || c_texts || c_flags;
  v_rest  jsonb;
  v_wrong text;
begin
  if jsonb_typeof(p_filter) = 'object' then
    select coalesce(
      format('%s must be ', given.key) || wanted.words,
      format('there is no %s', quote_literal(treadle.excerpt_name(given.key)))
    )
    into v_wrong
    from jsonb_each(p_filter) as given
    left join (
      select each.name, 'string' as kind, 'a text that is not empty' as words
      from unnest(c_texts) as each (name)
      union all
      select each.name, 'boolean', 'true or false' from unnest(c_flags) as each (name)
    ) as wanted on given.key = wanted.name
    where
      given.key <> all (c_keys)
      or jsonb_typeof(given.value) <> wanted.kind
      or (wanted.kind = 'string' and given.value = '""')
    limit 1;
    begin
      perform
        treadle.moment_of(p_filter ->> 'dead_before', treadle.clock()),
        treadle.moment_of(p_filter ->> 'dead_after', treadle.clock())
      where v_wrong is null;
    exception
      when data_exception then
        v_wrong := sqlerrm;
    end;
    v_rest := p_filter - c_texts - c_flags;
  else
    v_rest := p_filter;
  end if;

  if v_wrong is not null then
    perform treadle.refuse(
      'this filter cannot be used: ' || v_wrong,
      jsonb_build_object('argument', 'filter'),
      format(
        'For example {"fingerprint": "9f3a21c4d0e5", "dead_before": "2h", "poison": false}. '
        'It knows %s.',
        array_to_string(c_keys, ', ')
      )
    );
  end if;
  if v_rest <> '{}' or v_rest = p_filter or v_rest is null then
    perform treadle.check_filter(v_rest, array['dead_lettered'], array['dead_lettered']);
  end if;
end;
$$;

comment on function treadle.check_letter_filter(jsonb) is
'Internal: checks a filter of dead letters.';

revoke all on function treadle.check_letter_filter(jsonb) from public;
