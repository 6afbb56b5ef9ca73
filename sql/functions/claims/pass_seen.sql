-- pass_seen: begin behind the tasks of each lane that were tried already.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.pass_seen(
  p_lanes       integer[],
  p_seen_lanes  integer[],
  p_seen_ranks  bigint[],
  p_seen_tasks  uuid[],
  inout ranks   bigint[],
  inout tasks   uuid[]
)
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  select
    array_agg(coalesce(last.rank, lane.rank) order by lane.at),
    array_agg(coalesce(last.task, lane.task) order by lane.at)
  into ranks, tasks
  from unnest(p_lanes, ranks, tasks) with ordinality as lane (id, rank, task, at)
  left join (
    select distinct on (seen.lane) seen.lane, seen.rank, seen.task
    from unnest(p_seen_lanes, p_seen_ranks, p_seen_tasks) as seen (lane, rank, task)
    order by seen.lane, seen.rank desc, seen.task desc
  ) as last on lane.id = last.lane;
end;
$$;

comment on function treadle.pass_seen(
  integer[], integer[], bigint[], uuid[], bigint[], uuid[]
) is 'Internal: where to go on in each lane.';

revoke all on function treadle.pass_seen(
  integer[], integer[], bigint[], uuid[], bigint[], uuid[]
) from public;
