"""Invariants of DAGs and dependencies, checked by counting the rows again."""

from collections.abc import Sequence
from uuid import UUID

from tests.drivers.engine import Driver, Record

# One row for each thing that is wrong; nothing here trusts a counter or a state.
_FAULTS = """
with edges as (
  select
    dependencies.*, needed.status as needed_status,
    dependent.dag_id, dependent.parent_id, dependent.completed_at
  from treadle.dependencies
  inner join treadle.tasks as dependent on dependencies.task_id = dependent.id
  left join treadle.tasks as needed on dependencies.depends_on = needed.id
),

recount as (
  select
    dags.id, count(tasks.id) as tasks,
    count(*) filter (where tasks.status = 'completed') as completed,
    count(*) filter (where tasks.status = 'cancelled') as cancelled,
    count(*) filter (where tasks.status = 'dead_lettered') as dead_lettered,
    coalesce(bool_or(
      -- Subtasks do not count: what they are for is in the result of their parent.
      tasks.status = 'completed' and tasks.parent_id is null and not exists (
        select from edges
        where depends_on = tasks.id and dag_id = tasks.dag_id and parent_id is null
      )
    ), false) as result
  from treadle.dags left join treadle.tasks on dags.id = tasks.dag_id
  group by dags.id
),

ends as (
  select
    dags.id,
    count(*) filter (where events.kind = 'dag.started') as starts,
    count(*) filter (where events.kind in ('dag.completed', 'dag.cancelled')) as ends,
    count(*) filter (where events.kind = 'dag.reopened') as reopened,
    max(events.id) filter (where events.kind = 'dag.' || dags.status)
    >= max(events.id) filter (where events.kind in ('dag.completed', 'dag.cancelled')) as told
  from treadle.dags left join treadle.events on dags.id = events.dag_id
  group by dags.id
)

select 'waits for another number of tasks than it says' as fault, tasks.id
from treadle.tasks
where tasks.blocked_count <> (
  select count(*) from edges where edges.task_id = tasks.id and edges.met_at is null
)
union all
select 'waits for nothing and is not ready', tasks.id
from treadle.tasks
where
  tasks.status = 'pending' and tasks.blocked_count = 0
  and coalesce(tasks.run_at <= clock_timestamp(), true)
union all
select 'held in a DAG that is not open', tasks.id
from treadle.tasks inner join treadle.dags on tasks.dag_id = dags.id
where tasks.status = 'created' and dags.status <> 'open'
union all
select 'waits for a task that has released it', edges.task_id
from edges
where edges.met_at is null and (
  edges.needed_status is null
  or edges.needed_status = 'completed'
  or (edges.needed_status = 'cancelled' and edges.optional)
  or (edges.needed_status = 'dead_lettered' and edges.on_dead_letter = 'continue')
)
union all
select 'waits for a task that will never release it', edges.task_id
from edges
where edges.met_at is null and edges.completed_at is null and (
  edges.needed_status = 'cancelled'
  or (edges.needed_status = 'dead_lettered' and edges.on_dead_letter = 'cancel')
)
union all
select 'does not wait for a task that is not done', edges.task_id
from edges
where edges.met_at is not null and edges.needed_status <> 'completed' and not edges.optional
union all
select 'counts wrong: ' || dags.status, dags.id
from treadle.dags inner join recount on dags.id = recount.id
where
  (dags.tasks, dags.completed, dags.cancelled, dags.dead_lettered)
  <> (recount.tasks, recount.completed, recount.cancelled, recount.dead_lettered)
union all
select 'has the wrong state: ' || dags.status, dags.id
from treadle.dags inner join recount on dags.id = recount.id
where dags.status <> case
  when dags.status = 'open' or (dags.status = 'cancelled' and recount.tasks = 0) then dags.status
  when recount.completed + recount.cancelled = recount.tasks
    then case when recount.result then 'completed' else 'cancelled' end
  when recount.dead_lettered > 0 then 'failed'
  else 'running'
end
union all
select 'ended ' || ends.ends || ' times, reopened ' || ends.reopened || ' times', dags.id
from treadle.dags inner join ends on dags.id = ends.id
where
  ends.starts > 1
  or ends.ends - ends.reopened <> (dags.status in ('completed', 'cancelled'))::integer
  or (dags.status in ('completed', 'cancelled') and not coalesce(ends.told, false))
"""

# Edges that should still have held back a task that was claimed just now.
_EARLY = """
select dependencies.task_id, needed.id, needed.status
from treadle.dependencies
inner join treadle.tasks as needed on dependencies.depends_on = needed.id
where
  dependencies.task_id = any (%s)
  and needed.status <> 'completed'
  and not exists (
    -- How it is, and how it was each time before it was given another round.
    select
    from (
      select needed.status as ended
      union all
      select events.data ->> 'was' from treadle.events
      where events.task_id = needed.id and events.kind = 'task.retried'
    ) as ends
    where
      (ends.ended = 'cancelled' and dependencies.optional)
      or (ends.ended = 'dead_lettered' and dependencies.on_dead_letter = 'continue')
  )
"""


def faults(driver: Driver) -> list[Record]:
    """The violated invariants; empty if there are none."""
    return driver.records(_FAULTS)


def claimed_too_early(driver: Driver, ids: Sequence[UUID]) -> list[Record]:
    """The dependencies that these claimed tasks should still have waited for."""
    return driver.records(_EARLY, list(ids))


def unended(driver: Driver) -> dict[str, int]:
    """The number of tasks in each state that is not final."""
    query = """
        select status, count(*) from treadle.tasks
        where status not in ('completed', 'cancelled') group by status
    """
    return dict(driver.rows(query))
