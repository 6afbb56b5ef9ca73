-- 0012_triggers: when something happens, other work begins; and who is told that it happened.

create table treadle.triggers (
  id             uuid not null default treadle.uuidv7(),
  name           text not null,
  description    text,
  on_event       text not null,
  filter         jsonb not null default '{}',
  template       jsonb not null,
  failure_rate   jsonb,
  max_depth      smallint not null default 5,
  max_per_hour   integer default 1000,
  created_by     text not null default session_user,
  created_at     timestamptz not null default clock_timestamp(),
  updated_at     timestamptz not null default clock_timestamp(),
  active_at      timestamptz not null default clock_timestamp(),
  paused_at      timestamptz,
  paused_by      text,
  paused_reason  text,
  fired          bigint not null default 0,
  refused        bigint not null default 0,
  failed         bigint not null default 0,
  fired_at       timestamptz,
  refused_at     timestamptz,
  last_task      uuid,
  last_dag       uuid,
  last_error     text,
  error_at       timestamptz,
  checked_at     timestamptz,
  passed_at      timestamptz,
  constraint triggers_pkey primary key (id),
  constraint triggers_name_key unique (name),
  constraint triggers_name_check check (octet_length(name) between 1 and 100),
  constraint triggers_event_check check (octet_length(on_event) between 1 and 200),
  constraint triggers_filter_check check (jsonb_typeof(filter) = 'object'),
  constraint triggers_template_check check (
    jsonb_typeof(template) = 'object' and (template ? 'task') <> (template ? 'dag')
  ),
  constraint triggers_depth_check check (max_depth between 1 and 100),
  constraint triggers_hourly_check check (max_per_hour between 1 and 1000000)
);

comment on table treadle.triggers is 'When an event, then a task or a DAG from a template.';
comment on column treadle.triggers.filter is 'What the event must contain.';
comment on column treadle.triggers.failure_rate is
'For type.failing: of which type, over what window, above what share of attempts.';
comment on column treadle.triggers.max_depth is
'So many triggers may have led to one another, this one included: what bounds a loop.';
comment on column treadle.triggers.active_at is 'What happened before does not count.';
comment on column treadle.triggers.refused_at is 'When it was last told that it may not fire.';
comment on column treadle.triggers.checked_at is 'When its failure rate was last looked at.';
comment on column treadle.triggers.passed_at is 'When its failure rate last passed the limit.';

create index triggers_event_idx on treadle.triggers (on_event)
where paused_at is null;

create table treadle.trigger_fires (
  trigger_id  uuid not null,
  event_id    bigint not null,
  fired_at    timestamptz not null default clock_timestamp(),
  verdict     text not null,
  task_id     uuid,
  dag_id      uuid,
  depth       smallint not null,
  problem     text,
  constraint trigger_fires_pkey primary key (trigger_id, event_id),
  constraint trigger_fires_verdict_check check (verdict in ('fired', 'refused', 'failed')),
  constraint trigger_fires_made_check check (
    num_nonnulls(task_id, dag_id, problem) = 1 and (verdict = 'fired') = (problem is null)
  )
);

comment on table treadle.trigger_fires is
'What each trigger made of an event, or why it could not: at most once for each event.';
comment on column treadle.trigger_fires.depth is 'How many triggers led to it.';

create index trigger_fires_made_idx on treadle.trigger_fires (coalesce(task_id, dag_id))
where verdict = 'fired';

create index trigger_fires_time_idx on treadle.trigger_fires (trigger_id, fired_at);

-- Who wants to be told by NOTIFY at once; readers find everything without it.
create table treadle.event_listeners (
  name             text not null,
  listening_until  timestamptz not null,
  kinds            text[],
  constraint event_listeners_pkey primary key (name),
  constraint event_listeners_name_check check (octet_length(name) between 1 and 200)
)
with (fillfactor = 50);

comment on table treadle.event_listeners is 'Who is told of new events, and until when.';
comment on column treadle.event_listeners.kinds is 'Only of these; empty means of all.';

-- It says of which task it comes now.
drop function if exists treadle.emit_event(text, jsonb, text, text, text);
drop function if exists treadle.send_event(text, jsonb, text, text, text, boolean);
