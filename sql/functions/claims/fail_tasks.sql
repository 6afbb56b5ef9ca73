-- fail_tasks: end attempts that did not work out; the retry policy decides what follows.
--
-- p_actions: retry (whatever the class), fail (for good), cancel, or null for the policy. A class
-- that is not known counts as error, or as rate_limit where the text tells of one: no report is
-- refused. p_keys: the gate that a rate limit closes. p_feedback: lists of what validators had
-- against it. Says retrying, ready, dead_lettered, cancelled, already (a repeat) or stale.
--
-- Concurrency: rows are locked in id order, the fence is checked on the locked row.
-- Lock order:  tasks, then as end_attempts.
-- Raises:      TR001 invalid argument.

create or replace function treadle.fail_tasks(
  p_ids          uuid[],
  p_tokens       uuid[],
  p_classes      text[] default null,
  p_errors       text[] default null,
  p_actions      text[] default null,
  p_retry_after  double precision[] default null,
  p_keys         text[] default null,
  p_feedback     jsonb[] default null
)
returns table (id uuid, verdict text, retry_at timestamptz, class text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_held record;
begin
  perform treadle.check_failures(
    p_ids, p_tokens, '{classes,errors,actions,retry_after,keys,feedback}',
    cardinality(p_classes), cardinality(p_errors), cardinality(p_actions),
    cardinality(p_retry_after), cardinality(p_keys), cardinality(p_feedback)
  );
  perform treadle.keep_durable();
  perform treadle.lock_fallout(p_ids, coalesce('cancel' = any (p_actions), false));

  select
    array_agg(held.ctid) as rows, array_agg(held.id) as ids, array_agg(held.token) as tokens,
    array_agg(treadle.failure_class_of(held.class, held.error)) as classes,
    array_agg(held.error) as errors, array_agg(held.action) as actions,
    array_agg(held.retry_after) as retry_after, array_agg(held.key) as keys,
    array_agg(held.feedback) as feedback,
    array_fill('handler'::text, array[count(*)::integer]) as reasons
  into v_held
  from (
    select tasks.ctid, claim.*
    from (
      -- Named twice, it is still one attempt.
      select distinct on (given.id, given.token) given.*
      from unnest(
        p_ids, p_tokens, p_classes, p_errors, p_actions, p_retry_after, p_keys, p_feedback
      ) as given (id, token, class, error, action, retry_after, key, feedback)
    ) as claim
    inner join treadle.tasks on claim.id = tasks.id and claim.token = tasks.claim_token
    order by tasks.id
    for no key update of tasks
  ) as held;

  perform moved.id
  from treadle.end_attempts(
    v_held.rows, v_held.classes, v_held.reasons, v_held.errors, v_held.actions, v_held.retry_after,
    v_held.keys
  ) as moved;
  perform treadle.keep_feedback(v_held.ids, v_held.tokens, v_held.feedback)
  where p_feedback is not null and v_held.ids is not null;

  return query
  select
    verdicts.id,
    case
      when verdicts.verdict = 'already' and verdicts.id = any (v_held.ids) then tasks.status
      else verdicts.verdict
    end,
    tasks.retry_at, tasks.failure_class
  from treadle.end_verdicts(p_ids, p_tokens, '{}', null)
    with ordinality as verdicts (id, verdict, at)
  left join treadle.tasks on verdicts.id = tasks.id and verdicts.verdict = 'already'
  order by verdicts.at;
end;
$$;

comment on function treadle.fail_tasks(
  uuid[], uuid[], text[], text[], text[], double precision[], text[], jsonb[]
) is 'End failed attempts; says of each what becomes of its task.';

revoke all on function treadle.fail_tasks(
  uuid[], uuid[], text[], text[], text[], double precision[], text[], jsonb[]
) from public;
grant execute on function treadle.fail_tasks(
  uuid[], uuid[], text[], text[], text[], double precision[], text[], jsonb[]
) to treadle_worker;
