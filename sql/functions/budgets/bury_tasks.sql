-- bury_tasks: give up tasks that nobody has claimed, for want of money.
--
-- Concurrency: the caller holds the tasks, and what falls with them as far as it saw it.
-- Lock order:  tasks, dags, then the history.
-- Raises:      nothing.

create or replace function treadle.bury_tasks(
  p_ids      uuid[],
  p_reasons  text[],
  p_actor    text,
  p_now      timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  with buried as (
    update treadle.tasks
    set
      status = 'dead_lettered',
      outcome = 'dead_lettered',
      completed_at = p_now,
      failure_class = 'budget_exceeded',
      failure_reason = left(given.reason, 2000),
      slot = null,
      budget_id = null
    from unnest(p_ids, p_reasons) as given (id, reason)
    where tasks.id = given.id
    returning tasks.*
  ),

  letters as (
    insert into treadle.dead_letters (
      task_id, dead_lettered_at, attempts, class, reason, total_cost_usd, about, fingerprint
    )
    select
      buried.id, p_now, buried.attempt, buried.failure_class, buried.failure_reason,
      buried.cost_usd, said.about, treadle.error_fingerprint(buried.failure_class, said.about)
    from buried
    cross join lateral (
      select
        coalesce(treadle.error_about(buried.failure_reason), buried.failure_class) as about
      offset 0
    ) as said
    returning dead_letters.task_id, dead_letters as letter
  )

  insert into treadle.events (at, kind, task_id, queue, actor, data)
  select
    p_now, 'task.dead_lettered', buried.id, buried.queue, p_actor,
    jsonb_build_object('attempt', buried.attempt) || treadle.letter_facts(letters.letter)
  from buried
  inner join letters on buried.id = letters.task_id;
  perform treadle.settle_ends(p_ids, p_now);
end;
$$;

comment on function treadle.bury_tasks(uuid[], text[], text, timestamptz) is
'Internal: makes dead letters of waiting tasks, with class budget_exceeded.';

revoke all on function treadle.bury_tasks(uuid[], text[], text, timestamptz) from public;
