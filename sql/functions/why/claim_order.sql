-- claim_order: the ready tasks of a queue in the order in which they would be claimed.
--
-- select place, id, type, effective_priority, shut from treadle.claim_order('default', 20);
--
-- Those of open lanes come first. What shuts a lane to all agents is said in shut. In a fair queue
-- projects take turns; among projects that have as much under way the dice decide, not this list.
--
-- Concurrency: reads, as of one moment.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR202 unknown queue.

create or replace function treadle.claim_order(p_queue text, p_limit integer default 20)
returns table (
  place integer, id uuid, type text, priority smallint, effective_priority numeric,
  since timestamptz, title text, project text, shut text
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  if p_limit is null or p_limit not between 1 and 10000 then
    perform treadle.refuse(
      format('limit must be 1 to 10000, not %s', coalesce(p_limit::text, 'null')),
      jsonb_build_object('argument', 'limit')
    );
  end if;
  if not exists (select from treadle.queues where queues.name = p_queue) then
    perform treadle.check_names(p_queue, null);
  end if;

  return query
  select
    line.place::integer,
    tasks.id,
    tasks.type,
    tasks.priority,
    line.effective_priority,
    greatest(tasks.created_at, tasks.run_at),
    tasks.title,
    projects.name,
    line.shut
  from (
    select
      heads.id,
      heads.shut,
      row_number() over (
        order by heads.shut is not null, heads.turn, heads.place, heads.id
      ) as place,
      round(heads.place / 1000000.0, 3) as effective_priority
    from treadle.line_of(p_queue, p_limit, treadle.clock()) as heads
    order by 3
    limit p_limit
  ) as line
  inner join treadle.tasks on line.id = tasks.id
  left join treadle.projects on tasks.project_id = projects.id
  order by line.place;
end;
$$;

comment on function treadle.claim_order(text, integer) is
'The first ready tasks of a queue as claims would take them, and what shuts the lanes of others.';

revoke all on function treadle.claim_order(text, integer) from public;
grant execute on function treadle.claim_order(text, integer) to
treadle_observer, treadle_operator;
