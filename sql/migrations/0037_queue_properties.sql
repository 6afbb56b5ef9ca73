-- 0037_queue_properties: how the tasks of a queue reach their agents, as columns of the queue.
--
-- The engine asks for these properties and knows no queue by its name. The queues of the protocols
-- get theirs when they are made (view protocol_queues); those that exist get them here.

alter table treadle.queues
add column assignment text not null default 'claim',
add column hold boolean not null default false,
add column on_lease_expiry text not null default 'fail',
add column keep_changes boolean not null default false,
add constraint queues_assignment_check check (assignment in ('claim', 'manual', 'dispatch')),
add constraint queues_lease_expiry_check check (on_lease_expiry in ('fail', 'block')),
-- Only the dispatcher of such a queue can release its tasks and continue blocked ones, and only its
-- changes have words for the log.
add constraint queues_manual_check check (
  case when assignment = 'manual' then hold else on_lease_expiry = 'fail' and not keep_changes end
);

comment on column treadle.queues.assignment is
'claim: agents claim tasks; manual: a dispatcher hands each task to an agent, and no claim takes '
'it; dispatch: the dispatcher service claims tasks for registered agents and sends them.';
comment on column treadle.queues.hold is
'New tasks stay created until they are released one by one.';
comment on column treadle.queues.on_lease_expiry is
'fail: a claim that runs out is a failed attempt; block: its task is blocked, with a note.';
comment on column treadle.queues.keep_changes is
'Changes of state are appended to work_log.';

update treadle.queues
set assignment = 'manual', hold = true, on_lease_expiry = 'block', keep_changes = true
where queues.name = 'work';

update treadle.queues set assignment = 'dispatch' where queues.name = 'push';

alter table treadle.agents
add column assigned_only text[] not null default '{}';

comment on column treadle.agents.assigned_only is
'Queues in which the agent takes only tasks that are assigned to it.';

update treadle.agents set assigned_only = '{harness}' where agents.type = 'harness';

-- It returns more columns now.
drop function if exists treadle.read_queue(text);
