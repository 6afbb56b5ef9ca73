-- why_shut: a person stopped the queue or the type of a lane.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_shut(p_lane treadle.lanes)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    format(
      '%s %s is paused%s since %s%s', stopped.kind, stopped.name,
      coalesce(' by ' || stopped.paused_by, ''), treadle.utc_words(stopped.paused_at),
      coalesce(': ' || stopped.paused_reason, '')
    ),
    stopped.kind || '_paused',
    null::timestamptz,
    jsonb_strip_nulls(
      jsonb_build_object(
        stopped.kind, stopped.name, 'paused_by', stopped.paused_by,
        'paused_at', treadle.stamp(stopped.paused_at), 'said', stopped.paused_reason
      )
    )
  from (
    select
      'queue' as kind, queues.name, queues.paused_by, queues.paused_at, queues.paused_reason
    from treadle.queues
    where queues.name = p_lane.queue
    union all
    select
      'type', task_types.name, task_types.paused_by, task_types.paused_at,
      task_types.paused_reason
    from treadle.task_types
    where task_types.name = p_lane.type
  ) as stopped
  where stopped.paused_at is not null
  order by stopped.kind
$$;

comment on function treadle.why_shut(treadle.lanes) is
'Internal: that the queue or the type of a lane is paused, by whom and why.';

revoke all on function treadle.why_shut(treadle.lanes) from public;
