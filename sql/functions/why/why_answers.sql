-- why_answers: what a task has asked and waits to be told.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_answers(p_task treadle.tasks, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  if p_task.status <> 'blocked' then
    return;
  end if;

  return query
  select
    case
      when waits.expires_at <= p_now
        then 'its question expired at ' || treadle.utc_words(waits.expires_at)
        || ' and no promoter noticed: '
      when waits.kind = 'event'
        then format('waits for an event since %s: ', treadle.span_words(p_now - waits.opened_at))
      when waits.approvers > 1 then format(
        'asks %s people since %s (%s answered): ', waits.approvers,
        treadle.span_words(p_now - waits.opened_at), votes.given
      )
      else format('asks a question since %s: ', treadle.span_words(p_now - waits.opened_at))
    end
    || coalesce(
      waits.question || format(' (answer with: treadle answer %s)', right(waits.id::text, 8)),
      rtrim(waits.event || ' ' || waits.event_key)
    ),
    case
      when waits.expires_at <= p_now then 'wait_expired'
      when waits.kind = 'event' then 'event'
      when waits.kind = 'budget' then 'budget_question'
      else 'question'
    end,
    case when waits.expires_at > p_now then waits.expires_at end,
    jsonb_strip_nulls(
      jsonb_build_object(
        'wait_id', waits.id, 'kind', waits.kind, 'name', waits.name, 'question', waits.question,
        'options', waits.options, 'event', waits.event, 'event_key', waits.event_key,
        'approvers', waits.approvers, 'answers', votes.given,
        'opened_at', treadle.stamp(waits.opened_at),
        'expires_at', treadle.stamp(waits.expires_at), 'budget_id', waits.budget_id
      )
    )
  from treadle.waits
  cross join lateral (
    select count(*) as given from treadle.answers where answers.wait_id = waits.id
  ) as votes
  where waits.task_id = p_task.id and waits.status = 'open' and waits.awaited
  order by waits.opened_at, waits.id;
end;
$$;

comment on function treadle.why_answers(treadle.tasks, timestamptz) is
'Internal: the questions and events that a blocked task waits for.';

revoke all on function treadle.why_answers(treadle.tasks, timestamptz) from public;
