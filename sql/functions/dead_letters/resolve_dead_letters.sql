-- resolve_dead_letters: decide about dead letters by their ids, or by the ids of their tasks.
--
-- select * from treadle.resolve_dead_letters(array[id], 'retry', p_note => 'it is back');
-- select * from treadle.resolve_dead_letters(array[id], 'escalate', p_to => 'ops');
--
-- The verdict is retried, cancelled or escalated; already (why names the earlier decision), refused
-- (why gives the reason) or unknown. A refused letter does not stop the others, and a repeated call
-- reports already. With p_delay_s a retry starts after that many seconds.
--
-- Concurrency: the tasks and everything the decision touches are locked as one set; then the
-- letters are read.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      TR001 invalid argument.

-- check_decision: check that a decision about dead letters is complete and consistent.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_decision(
  p_decision  text,
  p_changes   jsonb,
  p_actor     text,
  p_note      text,
  p_delay_s   double precision default null,
  p_to        text default null
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong text;
  v_words text;
begin
  select rules.argument, rules.words
  into v_wrong, v_words
  from (
    values
    (
      'resolution',
      p_decision in ('retry', 'cancel', 'modify_and_retry', 'escalate'),
      format(
        'unknown resolution %s: use retry, modify_and_retry, cancel or escalate',
        quote_nullable(left(p_decision, 60))
      )
    ),
    (
      'resolution',
      (p_decision = 'modify_and_retry') = (coalesce(p_changes, '{}') <> '{}'),
      format(
        'resolution %s cannot be combined with changes %s', quote_nullable(left(p_decision, 60)),
        treadle.excerpt(p_changes)
      )
    ),
    (
      'delay_s',
      p_delay_s is null
      or (p_delay_s between 0 and 31536000 and p_decision in ('retry', 'modify_and_retry')),
      'a delay must be 0 to 31536000 seconds, with retry or modify_and_retry'
    ),
    (
      'to',
      case
        when p_decision = 'escalate'
          then coalesce(char_length(btrim(p_to)) > 0 and char_length(p_to) <= 200, false)
        else p_to is null
      end,
      'to must be a name of 1 to 200 characters and is for escalate only'
    )
  ) as rules (argument, good, words)
  where rules.good is not true
  limit 1;
  if found then
    perform treadle.raise_error(
      v_words, jsonb_build_object('argument', v_wrong),
      'Use retry or cancel without changes, modify_and_retry with changes, or escalate to a person.'
    );
  end if;
  perform treadle.check_options(coalesce(p_changes, '{}'), 'edit', '{set,unset}');
  perform treadle.check_actor(p_actor, p_note);
end;
$$;

-- find_letters: find the dead letters for ids that are either letter ids or task ids.
--
-- A task id means its undecided letter, otherwise its latest one.
--
-- Concurrency: the caller has locked the tasks; this is a separate statement, so that it sees their
-- current rows. An id that matches nothing is returned without a letter.
create or replace function treadle.find_letters(p_ids uuid[])
returns treadle.letter[]
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  select
    array(
      select
        row(
          given.id, meant.id, meant.task_id, tasks.queue, tasks.type,
          coalesce(meant.resolution is null, false) and meant.id is not null
        )::treadle.letter
      from (select distinct each.id from unnest(p_ids) as each (id)) as given
      left join lateral (
        select dead_letters.*
        from treadle.dead_letters
        where dead_letters.id = given.id or dead_letters.task_id = given.id
        order by dead_letters.resolution is null desc, dead_letters.dead_lettered_at desc
        limit 1
      ) as meant on true
      left join treadle.tasks on meant.task_id = tasks.id
      order by meant.task_id
    )
$$;

-- cancel_letters: cancel the tasks of dead letters, and their dependents.
--
-- Concurrency: the caller has locked the tasks and their dependents.
-- Lock order:  tasks, dags, then the history.
create or replace function treadle.cancel_letters(
  p_found  treadle.bulk_task[],
  p_actor  text,
  p_note   text
)
returns treadle.bulk_task[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.resolve_task(each.id, 'cancel', '{}', p_actor, p_note)
  from unnest(p_found) as each;
  perform treadle.propagate_ended(array_agg(each.id), treadle.clock(), 'dead_lettered')
  from unnest(p_found) as each
  having count(*) > 0;
  return array(
    select
      row(each.id, each.queue, each.type, each.status, 'cancelled', null)::treadle.bulk_task
    from unnest(p_found) as each
  );
end;
$$;

-- escalate_letters: assign dead letters to a person; they still wait for a decision.
--
-- A letter that is already assigned to that person is left as it is.
--
-- Concurrency: the caller has locked the tasks.
-- Lock order:  dead_letters, decisions, events.
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
        case when each.id = any (v_done) then null else 'it is already assigned to ' || p_to end
      )::treadle.bulk_task
    from unnest(p_found) as each
  );
end;
$$;

-- decision_text: describe the last decision about a dead letter: person, decision and time.
create or replace function treadle.decision_text(p_letter uuid)
returns text
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select
    format(
      '%s decided %s at %s%s', dead_letters.reviewer, dead_letters.resolution,
      treadle.format_utc(dead_letters.resolved_at), coalesce(': ' || dead_letters.note, '')
    )
  from treadle.dead_letters
  where dead_letters.id = p_letter and dead_letters.resolution is not null
$$;

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
  perform treadle.ensure_durable();
  v_tasks := array(
    select coalesce(dead_letters.task_id, given.id)
    from unnest(p_ids) as given (id)
    left join treadle.dead_letters on given.id = dead_letters.id
  );
  if p_resolution = 'cancel' then
    perform treadle.lock_downstream(v_tasks);
  else
    -- Includes their dependencies, so that a cancelled dependency is noticed.
    perform treadle.lock_tasks(v_tasks || treadle.dependencies_of(v_tasks));
  end if;

  v_letters := treadle.find_letters(p_ids);
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
      else treadle.decision_text(each.letter_id)
    end
  from unnest(v_letters) as each
  left join unnest(v_todo) as done on each.task_id = done.id
  left join treadle.tasks on each.task_id = tasks.id;
end;
$$;

comment on function treadle.resolve_dead_letters(
  uuid[], text, jsonb, text, text, double precision, text
) is 'Retry, cancel, modify_and_retry or escalate dead letters; returns a verdict for each.';

grant execute on function treadle.resolve_dead_letters(
  uuid[], text, jsonb, text, text, double precision, text
) to treadle_operator;
