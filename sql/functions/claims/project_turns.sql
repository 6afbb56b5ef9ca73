-- project_turns: how many tasks each project may have of the next ones.
--
-- The next task goes to the project with the least under way for its share, one after the other.
-- None gets more than v_level for each point of its share: at that level all turns are given away.
-- Among equals the dice decide, by their shares: a worker with one slot always finds nothing under
-- way, and would serve the same project for ever. A project without a share has nothing left.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.project_turns(
  p_running  bigint[],
  p_shares   float8[],
  p_limit    integer
)
returns integer[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_level float8 := (
    select (sum(project.running) + p_limit) / sum(project.share)
    from unnest(p_running, p_shares) as project (running, share)
    where project.share is not null
  );
begin
  return array(
    select count(turns.at)::integer
    from generate_series(1, cardinality(p_running)) as projects (at)
    left join (
      select project.at
      from (
        select given.at, given.running, given.share, -ln(1 - random()) / given.share as dice
        from unnest(p_running, p_shares) with ordinality as given (running, share, at)
        where given.share is not null
      ) as project
      cross join lateral generate_series(
        project.running,
        least(project.running + p_limit - 1, ceil(v_level * project.share)::bigint)
      ) as turn (number)
      order by turn.number / project.share, project.dice
      limit p_limit
    ) as turns on projects.at = turns.at
    group by projects.at
    order by projects.at
  );
end;
$$;

comment on function treadle.project_turns(bigint[], float8[], integer) is
'Internal: shares out the next tasks among projects.';

revoke all on function treadle.project_turns(bigint[], float8[], integer) from public;
