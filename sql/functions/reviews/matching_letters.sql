-- matching_letters: the dead letters that wait for a decision and that a filter finds.
--
-- With p_most it looks no further than it must to find so many, and may find some more: in steps,
-- each twice as long as the one before.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing: the filter was checked.

create or replace function treadle.matching_letters(
  p_filter  jsonb,
  p_after   uuid default null,
  p_most    integer default null
)
returns table (
  letter_id uuid, task_id uuid, queue text, type text, class text, fingerprint text
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := treadle.clock();
  v_before timestamptz := treadle.moment_of(p_filter ->> 'dead_before', v_now);
  v_after  timestamptz := treadle.moment_of(p_filter ->> 'dead_after', v_now);
  v_print  text := p_filter ->> 'fingerprint';
  v_poison boolean := p_filter ->> 'poison';
  v_handed boolean := p_filter ->> 'escalated';
  v_rest   jsonb := p_filter
    - array['fingerprint', 'dead_before', 'dead_after', 'poison', 'escalated'];
  v_last   uuid := p_after;
  v_step   integer := 2 * p_most;
  v_wanted integer := p_most;
  v_found  integer;
  v_tasks  uuid[];
begin
  loop
    v_tasks := array(
      select dead_letters.task_id
      from treadle.dead_letters
      where
        dead_letters.resolution is null
        and (v_last is null or dead_letters.task_id > v_last)
        and (v_print is null or dead_letters.fingerprint = v_print)
        and (v_before is null or dead_letters.dead_lettered_at < v_before)
        and (v_after is null or dead_letters.dead_lettered_at > v_after)
        and (v_poison is null or dead_letters.poison_pill = v_poison)
        and (v_handed is null or (dead_letters.escalated_at is not null) = v_handed)
      order by dead_letters.task_id
      limit v_step
    );
    return query
    select
      dead_letters.id, each.id, each.queue, each.type, dead_letters.class,
      dead_letters.fingerprint
    from treadle.matching_tasks(v_rest, array['dead_lettered'], v_tasks) as each
    inner join treadle.dead_letters
      on each.id = dead_letters.task_id and dead_letters.resolution is null
    order by each.id;

    get diagnostics v_found = row_count;
    v_wanted := v_wanted - v_found;
    exit when coalesce(v_wanted <= 0, true) or cardinality(v_tasks) < v_step;
    v_last := v_tasks[v_step];
    v_step := 2 * v_step;
  end loop;
end;
$$;

comment on function treadle.matching_letters(jsonb, uuid, integer) is
'Internal: open letters that a filter finds, in order of their tasks; all, or about as many.';

revoke all on function treadle.matching_letters(jsonb, uuid, integer) from public;
