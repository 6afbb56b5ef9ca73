-- node_kinds: check and prepare the tasks of a list, those of one kind together.
--
-- Those that say nothing of a project are of p_project: in a fair queue a lane is a project's.
--
-- Concurrency: may make lanes, see find_lane.
-- Lock order:  lanes.
-- Raises:      TR001 invalid argument, TR002 too large, TR202 unknown queue, TR203 unknown type.

create or replace function treadle.node_kinds(
  p_tasks    jsonb,
  p_now      timestamptz,
  p_project  uuid default null,
  out kinds   treadle.tasks[],
  out kind_of integer[]
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_own constant text[] := array['name', 'title', 'spec', 'after', 'inputs'];
  v_kind   record;
  v_places bigint[] := '{}';
  v_kinds  integer[] := '{}';
  v_row    treadle.tasks;
begin
  kinds := '{}';
  for v_kind in
    select
      given.task - c_own as options,
      array_agg(given.at) as places,
      array_agg(coalesce(given.task -> 'spec', '{}') order by given.at) as specs
    from jsonb_array_elements(p_tasks) with ordinality as given (task, at)
    group by given.task - c_own
    -- The same order for all: two that make the same new lanes do not block each other.
    order by given.task - c_own
  loop
    v_row := treadle.prepare_task(
      case
        when p_project is null or v_kind.options ?| array['project', 'project_id']
          then v_kind.options
        else v_kind.options || jsonb_build_object('project_id', p_project)
      end,
      p_now
    );
    perform treadle.check_specs(
      v_kind.specs,
      (select queues.max_spec_bytes from treadle.queues where queues.name = v_row.queue)
    );
    kinds := kinds || v_row;
    v_places := v_places || v_kind.places;
    v_kinds := v_kinds
      || array_fill(cardinality(kinds), array[cardinality(v_kind.places)]);
  end loop;

  kind_of := array(
    select found.kind from unnest(v_places, v_kinds) as found (place, kind) order by found.place
  );
end;
$$;

comment on function treadle.node_kinds(jsonb, timestamptz, uuid) is
'Internal: the distinct kinds of some new tasks, and which each task is of.';

revoke all on function treadle.node_kinds(jsonb, timestamptz, uuid) from public;
