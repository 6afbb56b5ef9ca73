-- list_work_items: list the ids of matching work items, in the order of the work API.
--
-- select work_items.* from treadle.list_work_items('dispatched', 'steve-w') with ordinality as l
-- (id, n) inner join treadle.work_items on l.id = work_items.id order by l.n;
--
-- Ordered by priority and age; with p_since by age only. p_since: created after that time, or ended
-- after it if p_status is a final state. p_after: the last item of the previous page.
-- Raises:      TR001 invalid argument, TR215 work item not found.

-- work_states: return the task states for a status name of the work API.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.work_states(p_status text)
returns text[]
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_states constant text[] := array[
    'created', 'pending', 'ready', 'claimed', 'running', 'validating', 'blocked', 'retrying',
    'completed', 'dead_lettered', 'cancelled'
  ];
  v_found text[] := array(
    select states.name from unnest(c_states) as states (name)
    where treadle.work_status(states.name) = p_status
  );
begin
  if v_found = '{}' then
    perform treadle.raise_error(
      format('unknown status %L', left(p_status, 60)),
      jsonb_build_object('argument', 'status'),
      'See the view treadle.work_transitions.'
    );
  end if;
  return v_found;
end;
$$;

create or replace function treadle.list_work_items(
  p_status   text default null,
  p_agent    text default null,
  p_project  uuid default null,
  p_since    timestamptz default null,
  p_after    uuid default null,
  p_limit    integer default 200
)
returns setof uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
  v_states text[] := case when p_status is not null then treadle.work_states(p_status) end;
  v_ended  boolean := treadle.work_outcome(p_status) is not null;
  v_after  treadle.tasks;
begin
  if not coalesce(p_limit between 1 and 10000, false) then
    perform treadle.raise_error(
      'limit must be 1 to 10000', jsonb_build_object('argument', 'limit')
    );
  end if;
  if p_after is not null then
    select tasks.* into v_after from treadle.tasks
    where tasks.id = p_after and tasks.queue = 'work';
    if not found then
      perform treadle.lock_work_item(p_after, null);
    end if;
  end if;

  return query
  select listed.id
  from (
    select
      tasks.id,
      tasks.created_at,
      -- If the priority is ignored, it is the same for all rows.
      case when p_since is null then treadle.work_priority(tasks.priority) else 0 end as tier
    from treadle.tasks
    where
      tasks.queue = 'work'
      and (p_status is null or tasks.status = any (v_states))
      and (p_agent is null or tasks.assigned_agent = p_agent)
      and (p_project is null or tasks.project_id = p_project)
      and (
        p_since is null
        or case when v_ended then tasks.completed_at else tasks.created_at end > p_since
      )
  ) as listed
  where
    p_after is null
    or (listed.tier, listed.created_at, listed.id) > (
      case when p_since is null then treadle.work_priority(v_after.priority) else 0 end,
      v_after.created_at, v_after.id
    )
  order by listed.tier, listed.created_at, listed.id
  limit p_limit;
end;
$$;

comment on function treadle.list_work_items(text, text, uuid, timestamptz, uuid, integer) is
'The ids of work items by status, agent, project and age, in order and in pages.';

grant execute on function
treadle.list_work_items(text, text, uuid, timestamptz, uuid, integer) to
treadle_worker, treadle_observer, treadle_operator;
