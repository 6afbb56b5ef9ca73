-- escalate_letters: hand dead letters to someone; they go on waiting for a decision.
--
-- One that is with them already is left as it is.
--
-- Concurrency: the caller holds the tasks.
-- Lock order:  dead_letters, decisions, events.
-- Raises:      nothing.

create or replace function treadle.escalate_letters(
  p_found  treadle.bulk_task[],
  p_actor  text,
  p_note   text,
  p_to     text
)
returns treadle.bulk_task[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now  timestamptz := treadle.clock();
  v_done uuid[];
begin
  with handed as (
    update treadle.dead_letters
    set escalated_at = v_now, escalated_to = p_to
    from unnest(p_found) as each
    where
      dead_letters.task_id = each.id and dead_letters.resolution is null
      and dead_letters.escalated_to is distinct from p_to
    returning dead_letters.*, each.queue, each.type
  ),

  kept as (
    insert into treadle.dead_letter_decisions (
      at, letter_id, task_id, decision, actor, note, escalated_to, queue, type, class,
      fingerprint, about
    )
    select
      v_now, handed.id, handed.task_id, 'escalate', p_actor, p_note, p_to, handed.queue,
      handed.type, handed.class, handed.fingerprint, handed.about
    from handed
    returning dead_letter_decisions.task_id
  ),

  told as (
    insert into treadle.events (at, kind, task_id, queue, actor, data)
    select
      v_now, 'dead_letter.escalated', handed.task_id, handed.queue, p_actor,
      jsonb_build_object(
        'letter_id', handed.id, 'to', p_to, 'note', p_note, 'type', handed.type,
        'class', handed.class, 'reason', left(handed.reason, 500),
        'fingerprint', handed.fingerprint
      )
    from handed
  )

  select array_agg(kept.task_id) into v_done from kept;

  return array(
    select
      row(
        each.id, each.queue, each.type, each.status,
        case when each.id = any (v_done) then 'escalated' else 'already' end,
        case when each.id = any (v_done) then null else 'it is with ' || p_to || ' already' end
      )::treadle.bulk_task
    from unnest(p_found) as each
  );
end;
$$;

comment on function treadle.escalate_letters(treadle.bulk_task[], text, text, text) is
'Internal: marks letters that wait as handed to someone, and tells it.';

revoke all on function treadle.escalate_letters(treadle.bulk_task[], text, text, text) from public;
