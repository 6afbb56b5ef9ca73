-- resolve_dead_letters_where: decide about all dead letters that match a filter.
--
-- select * from treadle.resolve_dead_letters_where('{"fingerprint": "9f3a21c4d0e5"}', p_dry_run =>
-- true);
--
-- Returns counts by queue, type, class and group. The verdict is found (dry run), a verdict of
-- resolve_dead_letters, or left: beyond the limit. If there are more, not all of them are counted.
-- A call is one transaction; for the rest, call again with the highest last_task as p_after.
--
-- Concurrency: see resolve_dead_letters; a letter that was decided in the meantime gets already.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR203 unknown type.

-- check_letter_filter: check a filter for dead letters.
--
-- It accepts the keys of a task filter and fingerprint, dead_before, dead_after, poison and
-- escalated. {"status": "dead_lettered"} matches all dead letters.
--
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
      format('unknown key %s', quote_literal(treadle.excerpt_name(given.key)))
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
        treadle.parse_time(p_filter ->> 'dead_before', treadle.clock()),
        treadle.parse_time(p_filter ->> 'dead_after', treadle.clock())
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
    perform treadle.raise_error(
      'this filter cannot be used: ' || v_wrong,
      jsonb_build_object('argument', 'filter'),
      format(
        'For example {"fingerprint": "9f3a21c4d0e5", "dead_before": "2h", "poison": false}. '
        'Keys: %s.',
        array_to_string(c_keys, ', ')
      )
    );
  end if;
  if v_rest <> '{}' or v_rest = p_filter or v_rest is null then
    perform treadle.check_filter(v_rest, array['dead_lettered'], array['dead_lettered']);
  end if;
end;
$$;

-- matching_letters: find undecided dead letters that match a filter.
--
-- With p_max it searches in steps of doubling size and stops once it has found that many; it may
-- return some more. The filter has been checked already.
create or replace function treadle.matching_letters(
  p_filter  jsonb,
  p_after   uuid default null,
  p_max    integer default null
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
  v_before timestamptz := treadle.parse_time(p_filter ->> 'dead_before', v_now);
  v_after  timestamptz := treadle.parse_time(p_filter ->> 'dead_after', v_now);
  v_print  text := p_filter ->> 'fingerprint';
  v_poison boolean := p_filter ->> 'poison';
  v_handed boolean := p_filter ->> 'escalated';
  v_rest   jsonb := p_filter
    - array['fingerprint', 'dead_before', 'dead_after', 'poison', 'escalated'];
  v_last   uuid := p_after;
  v_step   integer := 2 * p_max;
  v_wanted integer := p_max;
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

create or replace function treadle.resolve_dead_letters_where(
  p_filter      jsonb,
  p_resolution  text default 'retry',
  p_changes     jsonb default '{}',
  p_actor       text default null,
  p_note        text default null,
  p_delay_s     double precision default null,
  p_to          text default null,
  p_dry_run     boolean default false,
  p_limit       integer default 1000,
  p_after       uuid default null
)
returns table (
  queue text, type text, class text, fingerprint text, verdict text, why text, letters bigint,
  last_task uuid
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_ids uuid[];
begin
  perform treadle.check_decision(
    p_resolution, p_changes, coalesce(p_actor, session_user), p_note, p_delay_s, p_to
  );
  perform treadle.check_letter_filter(p_filter);
  if p_limit is null or p_limit not between 1 and 10000 then
    perform treadle.raise_error(
      format('limit must be 1 to 10000, not %s', coalesce(p_limit::text, 'null')),
      jsonb_build_object('argument', 'limit'), 'Call again for the rest.'
    );
  end if;
  v_ids := array(
    select each.letter_id
    from treadle.matching_letters(
      p_filter, p_after, case when not p_dry_run then p_limit + 1 end
    ) as each
  );

  return query
  with done as materialized (
    select each.letter_id, each.verdict, each.why
    from treadle.resolve_dead_letters(
      case when p_dry_run then '{}' else v_ids[:p_limit] end,
      p_resolution, p_changes, p_actor, p_note, p_delay_s, p_to
    ) as each
  )

  select
    tasks.queue, tasks.type, dead_letters.class, dead_letters.fingerprint,
    coalesce(done.verdict, case when p_dry_run then 'found' else 'left' end),
    min(done.why), count(*), (max(tasks.id::text) filter (where done.verdict is not null))::uuid
  from unnest(v_ids) as wanted (id)
  inner join treadle.dead_letters on wanted.id = dead_letters.id
  inner join treadle.tasks on dead_letters.task_id = tasks.id
  left join done on wanted.id = done.letter_id
  group by
    1, 2, 3, 4, 5, regexp_replace(done.why, '''[^'']*''|[0-9a-f-]{36}', '', 'g')
  order by 5, 7 desc, 1, 2, 3, 4;
end;
$$;

comment on function treadle.resolve_dead_letters_where(
  jsonb, text, jsonb, text, text, double precision, text, boolean, integer, uuid
) is 'Decide about all dead letters that match a filter; p_dry_run only counts them.';

grant execute on function treadle.resolve_dead_letters_where(
  jsonb, text, jsonb, text, text, double precision, text, boolean, integer, uuid
) to treadle_operator;
