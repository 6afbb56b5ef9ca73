-- set_concurrency: say how many tasks of a concurrency key may be under way at once.
--
-- select treadle.set_concurrency('repo:web', 3);
--
-- 0 holds all of them back until an operator sets another limit. Tasks that are under way above a
-- lower limit go on; no other starts before they are through.
--
-- Concurrency: waits for who gives slots of this key away.
-- Lock order:  concurrency_keys.
-- Raises:      TR001 invalid argument.

create or replace function treadle.set_concurrency(
  p_key    text,
  p_max    integer,
  p_actor  text default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  perform treadle.check_key(p_key, p_max, 0);
  perform treadle.keep_durable();
  insert into treadle.concurrency_keys (key, max) values (p_key, p_max)
  on conflict (key) do update set max = p_max, touched = concurrency_keys.touched + 1;
  -- What was asked for earlier does not come after this.
  update treadle.admissions
  set max = null
  where admissions.kind = 'slot' and admissions.key = p_key and admissions.max is not null;

  insert into treadle.events (at, kind, actor, data)
  values (
    treadle.clock(), 'key.limited', coalesce(p_actor, session_user),
    jsonb_build_object('key', p_key, 'max', p_max)
  );
  perform treadle.request_slots(array[p_key]);
end;
$$;

comment on function treadle.set_concurrency(text, integer, text) is
'Set the number of slots of a concurrency key; 0 holds its tasks back.';

revoke all on function treadle.set_concurrency(text, integer, text) from public;
grant execute on function treadle.set_concurrency(text, integer, text) to treadle_operator;
