-- are_turns: whether a claim over some lanes has to choose between projects.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.are_turns(p_lanes integer[], p_projects uuid[], p_fair boolean)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    coalesce(p_fair, false)
    and (
      select count(distinct coalesce(lane.project::text, '')) > 1
      from unnest(p_lanes, p_projects) as lane (id, project)
      where exists (
        select from treadle.tasks where tasks.lane_id = lane.id and tasks.status = 'ready'
      )
    )
$$;

comment on function treadle.are_turns(integer[], uuid[], boolean) is
'Internal: whether more than one project has ready tasks in lanes that are fair.';

revoke all on function treadle.are_turns(integer[], uuid[], boolean) from public;
