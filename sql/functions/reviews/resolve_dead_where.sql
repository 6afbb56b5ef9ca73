-- resolve_dead_where: decide about all dead letters that a filter finds.
--
-- select * from treadle.resolve_dead_where('{"fingerprint": "9f3a21c4d0e5"}', p_dry_run => true);
--
-- Counts by queue, type, class and group. The verdict is found (dry run), what resolve_dead_letters
-- says of each, or left: beyond the limit, where there are more, and not all of them are counted. A
-- call is one transaction; for the rest call again with the highest last_task as p_after.
--
-- Concurrency: see resolve_dead_letters; a letter that was decided about meanwhile is already.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR203 unknown type.

create or replace function treadle.resolve_dead_where(
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
    perform treadle.refuse(
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

comment on function treadle.resolve_dead_where(
  jsonb, text, jsonb, text, text, double precision, text, boolean, integer, uuid
) is 'Decide about all dead letters that a filter finds, or with p_dry_run count them.';

revoke all on function treadle.resolve_dead_where(
  jsonb, text, jsonb, text, text, double precision, text, boolean, integer, uuid
) from public;
grant execute on function treadle.resolve_dead_where(
  jsonb, text, jsonb, text, text, double precision, text, boolean, integer, uuid
) to treadle_operator;
