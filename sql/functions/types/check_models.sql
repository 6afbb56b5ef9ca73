-- check_models: refuse what cannot be a list of models.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_models(p_models text[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(p_models) > 40 or exists (
    select from unnest(p_models) as given (name)
    where octet_length(given.name) between 1 and 200 is not true
  ) then
    perform treadle.refuse(
      'models must be at most 20 names of 1 to 200 bytes',
      jsonb_build_object('argument', 'models'), 'For example ["large", "small"].'
    );
  end if;
end;
$$;

comment on function treadle.check_models(text[]) is
'Internal: refuses names of models that are empty or too many.';

revoke all on function treadle.check_models(text[]) from public;
