-- admit_tasks: let tasks go on that waited for a slot or for money, where there is room now.
--
-- Called by who claims and by the promoter, for up to p_limit keys and as many budgets. What
-- another session has in hand is left to it or to the next call: its requests stay.
--
-- Concurrency: requests, keys and tasks locked by others are skipped, never waited for.
-- Lock order:  concurrency_keys, budgets, tasks (never waited for).
-- Raises:      nothing.

create or replace function treadle.admit_tasks(p_limit integer default 100)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key   text;
  v_ids   bigint[];
  v_moved integer := 0;
begin
  perform treadle.keep_durable();
  foreach v_key in array treadle.asked_keys('slot', p_limit) loop
    v_moved := v_moved + treadle.admit_slots(v_key);
  end loop;

  foreach v_key in array treadle.asked_keys('budget', p_limit) loop
    v_ids := array(
      select admissions.id
      from treadle.admissions
      where admissions.kind = 'budget' and admissions.key = v_key
      for update skip locked
    );
    continue when v_ids = '{}';
    v_moved := v_moved + treadle.admit_budget(v_key::bigint);
    delete from treadle.admissions where admissions.id = any (v_ids);
  end loop;
  return v_moved;
end;
$$;

comment on function treadle.admit_tasks(integer) is
'Make tasks claimable for which a concurrency key or a budget has room; says how many.';

revoke all on function treadle.admit_tasks(integer) from public;
grant execute on function treadle.admit_tasks(integer) to treadle_operator, treadle_worker;
