-- resolve_dead_letters: decide about dead letters by their ids, or by those of their tasks.
--
-- select * from treadle.resolve_dead_letters(array[id], 'retry', p_note => 'it is back');
-- select * from treadle.resolve_dead_letters(array[id], 'escalate', p_to => 'ops');
--
-- The verdict is retried, cancelled or escalated; already (why says who was first), refused
-- (why says it) or unknown. One that is refused does not stop the others, and a repeated call finds
-- them decided. With p_delay_s a retry waits so long first.
--
-- Concurrency: tasks and what the decision touches are locked as one set, then the letters are read
--              as they are then.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      TR001 invalid argument.

create or replace function treadle.resolve_dead_letters(
  p_ids         uuid[],
  p_resolution  text default 'retry',
  p_changes     jsonb default '{}',
  p_actor       text default null,
  p_note        text default null,
  p_delay_s     double precision default null,
  p_to          text default null
)
returns table (id uuid, task_id uuid, letter_id uuid, verdict text, status text, why text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_actor   text := coalesce(p_actor, session_user);
  v_tasks   uuid[];
  v_letters treadle.letter[];
  v_todo    treadle.bulk_task[];
begin
  perform treadle.check_decision(p_resolution, p_changes, v_actor, p_note, p_delay_s, p_to);
  perform treadle.keep_durable();
  v_tasks := array(
    select coalesce(dead_letters.task_id, given.id)
    from unnest(p_ids) as given (id)
    left join treadle.dead_letters on given.id = dead_letters.id
  );
  if p_resolution = 'cancel' then
    perform treadle.lock_downstream(v_tasks);
  else
    -- With what they wait for, so that none of that is cancelled unseen.
    perform treadle.lock_tasks(v_tasks || treadle.dependencies_of(v_tasks));
  end if;

  v_letters := treadle.letters_of(p_ids);
  v_todo := array(
    select distinct
      row(each.task_id, each.queue, each.type, 'dead_lettered', 'retried', null)::treadle.bulk_task
    from unnest(v_letters) as each
    where each.is_open
  );
  v_todo := case p_resolution
    when 'cancel' then treadle.cancel_letters(v_todo, v_actor, p_note)
    when 'escalate' then treadle.escalate_letters(v_todo, v_actor, p_note, p_to)
    else treadle.retry_bulk(v_todo, v_actor, p_note, p_resolution, p_changes, p_delay_s)
  end;

  return query
  select
    each.id, each.task_id, each.letter_id,
    case when each.is_open then done.verdict when each.letter_id is null then 'unknown'
      else 'already' end,
    tasks.status,
    case
      when each.is_open then done.why
      when each.letter_id is null then 'there is no such dead letter'
      else treadle.decided_words(each.letter_id)
    end
  from unnest(v_letters) as each
  left join unnest(v_todo) as done on each.task_id = done.id
  left join treadle.tasks on each.task_id = tasks.id;
end;
$$;

comment on function treadle.resolve_dead_letters(
  uuid[], text, jsonb, text, text, double precision, text
) is 'Retry, cancel, modify_and_retry or escalate dead letters; says of each what became of it.';

revoke all on function treadle.resolve_dead_letters(
  uuid[], text, jsonb, text, text, double precision, text
) from public;
grant execute on function treadle.resolve_dead_letters(
  uuid[], text, jsonb, text, text, double precision, text
) to treadle_operator;
