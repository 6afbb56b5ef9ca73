-- review_budgets: look at the budgets that tasks wait for: go on, ask, or give up.
--
-- A task that cannot be moved does not stop the others: it is reported in problem, and left out
-- when its id is passed in p_skip.
--
-- Concurrency: first what fails, with locks that are waited for briefly and no budget held; then
--              the rest, which skips what others hold; the next look comes soon.
-- Lock order:  tasks, dags, then the history; budgets, tasks (never waited for), waits.
-- Raises:      nothing.

create or replace function treadle.review_budgets(
  p_limit  integer default 100,
  p_skip   uuid[] default '{}'
)
returns table (id uuid, verdict text, problem text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
-- Well below deadlock_timeout: who holds what it wants is not made to give way.
set lock_timeout = '200ms'
as $$
#variable_conflict use_column
declare
  v_now     timestamptz := treadle.clock();
  v_budgets bigint[] := treadle.parked_budgets();
  v_ids     uuid[];
  v_asked   uuid;
begin
  if v_budgets = '{}' then
    return;
  end if;
  perform treadle.keep_durable();
  v_ids := array(
    select hopeless.id
    from treadle.hopeless_tasks(
      v_budgets, 'fail', v_now, p_limit + cardinality(p_skip)
    ) as hopeless
    where hopeless.id <> all (p_skip)
    limit p_limit
  );
  begin
    return query
    select buried.id, 'dead_lettered', null
    from unnest(treadle.fail_parked(v_ids, v_now, 10000)) as buried (id)
    where v_ids <> '{}';
  exception when others then
    -- One of them is bad: each on its own, so that the rest go through.
    for v_at in 1..cardinality(v_ids) loop
      begin
        return query
        select buried.id, 'dead_lettered', null
        from unnest(treadle.fail_parked(v_ids[v_at:v_at], v_now, 10000)) as buried (id);
      exception
        when lock_not_available then
          perform set_config('lock_timeout', '10ms', true);
        when others then
          return query select v_ids[v_at], 'dead_lettered', sqlerrm;
      end;
    end loop;
  end;

  for v_at in 1..cardinality(v_budgets) loop
    begin
      v_asked := treadle.review_budget(v_budgets[v_at], v_now);
    exception when lock_not_available then
      -- A row that is being written is waited for even where locked ones are skipped.
      continue;
    end;
    return query select v_asked, 'asked', null where v_asked is not null;
  end loop;
end;
$$;

comment on function treadle.review_budgets(integer, uuid[]) is
'Go on, ask or give up where budgets had no room; says of each task that moved what it does now.';

revoke all on function treadle.review_budgets(integer, uuid[]) from public;
grant execute on function treadle.review_budgets(integer, uuid[]) to treadle_worker;
