-- declare_types: what an application handles: its types with their settings, and their queues.
--
-- Called by workers and producers when they start. Code is the truth about its types; a queue is
-- only made where it is missing, its settings belong to the operator.
--
-- Concurrency: writes nothing when nothing is new.
-- Lock order:  queues, task_types, each in order of name; gates.
-- Raises:      TR001 invalid argument.

create or replace function treadle.declare_types(p_types jsonb, p_queues text[] default '{}')
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(p_types) is distinct from 'object' then
    perform treadle.refuse(
      'the types must be a json object',
      jsonb_build_object('argument', 'types'),
      'For example {"crawl": {"timeout_s": 600}}.'
    );
  end if;

  perform treadle.define_queue(given.name)
  from (select distinct wanted.name from unnest(p_queues) as wanted (name)) as given
  where not exists (select from treadle.queues where queues.name = given.name)
  order by given.name;

  perform treadle.define_type(given.name, given.settings)
  from (
    select each.key as name, each.value as settings from jsonb_each(p_types) as each
    order by each.key
  ) as given;
end;
$$;

comment on function treadle.declare_types(jsonb, text[]) is
'Make the types {"name": {settings}} and queues of an application known.';

revoke all on function treadle.declare_types(jsonb, text[]) from public;
grant execute on function treadle.declare_types(jsonb, text[]) to
treadle_producer, treadle_worker;
