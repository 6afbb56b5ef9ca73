-- fail_tasks: end failed attempts; the retry policy decides what follows.
--
-- p_actions: retry (whatever the class), fail (for good), cancel, or null for the policy. An
-- unknown class counts as error, or as rate_limit if the text mentions one, so that no report is
-- rejected. p_keys: the gate that a rate limit closes. p_feedback: lists of messages from
-- validators. Returns retrying, ready, dead_lettered, cancelled, already (a repeat) or stale.
--
-- Concurrency: rows are locked in id order; the token is checked on the locked row.
-- Lock order:  tasks, then as end_attempts.
-- Raises:      TR001 invalid argument.

-- check_failures: check that there are as many values as failed attempts.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_failures(
  p_ids     uuid[],
  p_tokens  uuid[],
  p_names   text[],
  variadic p_lengths integer[]
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.check_array_lengths(p_ids, p_tokens);
  perform treadle.check_array_lengths(p_ids, null, given.name, given.length)
  from unnest(p_names, p_lengths) as given (name, length)
  where given.length is not null;
end;
$$;

-- rate_limit_in: return whether a text reports a rate limit.
--
-- A programming error does not count, whatever names it mentions.
create or replace function treadle.rate_limit_in(p_text text)
returns boolean
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  -- Lines of source code in a traceback are ignored.
  with said as (
    select regexp_replace(
      regexp_replace(left(p_text, 20000), '^[ \t]+File "[^\n]*(\n[ \t]{4,}[^\n]*)*', '', 'ng'),
      '^[ \t]+at [^\n]*$', '', 'ng'
    ) as words
  )

  select coalesce(
    (
      said.words ~ '(\mrate|Rate|RATE)[ _-]?[Ll](imit|IMIT)'
      or said.words ~* 'too[ _-]?many[ _-]?requests|retry-after'
      or said.words ~* 'retry after ([0-9]|(mon|tue|wed|thu|fri|sat|sun)[a-z]*, [0-9])'
      or said.words ~* '(?<!disk )quota[ _-]?exceeded|exceeded (your )?(current )?quota'
      -- As a word: not 4290, 0.429, #429, 1,429, x/429 or line 429.
      or said.words ~* '(?<![[:alnum:]_.,#/$-]|line |port )429(?![[:alnum:]_-]|[.,:][[:digit:]])'
    )
    -- First in the line, or after words such as: validator x crashed.
    and treadle.error_line(p_text) !~ (
      '^([^:]*: )?((Type|Name|Attribute|Import|ModuleNotFound|Assertion|Syntax|Key)Error)(:|$)'
    ),
    false
  )
  from said
$$;

-- failure_classes: return all failure classes; attempts_class_check has the same list.
create or replace function treadle.failure_classes()
returns text[]
language sql
immutable
parallel safe
return array[
  'auth_failure', 'budget_exceeded', 'crash', 'error', 'invalid_output', 'rate_limit', 'refused',
  'timeout', 'unavailable'
];

-- failure_class_of: return the class of a failure: as reported, or found in its text.
create or replace function treadle.failure_class_of(p_class text, p_error text)
returns text
language sql
immutable
parallel safe
return case
  when p_class = any (treadle.failure_classes()) then p_class
  when treadle.rate_limit_in(p_error) then 'rate_limit'
  else 'error'
end;

-- save_feedback: store the messages of validators with attempts that have just ended.
--
-- The caller held the claims, so messages of superseded claims are not stored. At most 20 messages
-- of 2000 characters each are kept, since they go into the prompt of the next attempt.
--
-- Concurrency: only rows that this transaction has written.
-- Lock order:  attempts.
-- Raises:      TR001 invalid argument.
create or replace function treadle.save_feedback(
  p_ids       uuid[],
  p_tokens    uuid[],
  p_feedback  jsonb[]
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.raise_error(
    format('the feedback must be a list of texts, not %s', treadle.excerpt(given.messages)),
    jsonb_build_object('argument', 'feedback'), 'For example ["the summary is empty"].'
  )
  from unnest(p_feedback) as given (messages)
  where
    jsonb_typeof(given.messages) <> 'array'
    or jsonb_path_exists(given.messages, '$[*] ? (@.type() <> "string")');

  update treadle.attempts
  set
    feedback = (
      select jsonb_agg(left(said.message, 2000) order by said.at)
      from jsonb_array_elements_text(given.messages) with ordinality as said (message, at)
      where said.at <= 20
    )
  from unnest(p_ids, p_tokens, p_feedback) as given (id, token, messages)
  where
    attempts.task_id = given.id
    and attempts.claim_token = given.token
    and given.messages is not null;
end;
$$;

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
  perform treadle.ensure_durable();
  perform treadle.lock_failure_cascade(p_ids, coalesce('cancel' = any (p_actions), false));

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
      -- A task that is named twice still has one attempt.
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
  perform treadle.save_feedback(v_held.ids, v_held.tokens, v_held.feedback)
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
) is 'End failed attempts; returns what becomes of each task.';

-- fail_task: end one failed attempt; an error if the claim was superseded.
--
-- select treadle.fail_task(id, token, 'tests are red');
--
-- Concurrency: see fail_tasks.
-- Lock order:  tasks, then the history.
-- Raises:      TR101 claim lost.
create or replace function treadle.fail_task(
  p_id           uuid,
  p_token        uuid,
  p_error        text default null,
  p_class        text default null,
  p_action       text default null,
  p_retry_after  double precision default null,
  p_key          text default null,
  p_feedback     jsonb default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_verdict text;
begin
  select ended.verdict
  into v_verdict
  from treadle.fail_tasks(
    array[p_id], array[p_token], array[p_class], array[p_error], array[p_action],
    array[p_retry_after], array[p_key],
    case when p_feedback is not null then array[p_feedback] end
  ) as ended;
  -- The caller asked for the cancellation, so the claim was not lost.
  if p_action = 'cancel' and v_verdict = 'cancelled' then
    return v_verdict;
  end if;
  return treadle.raise_if_lost(p_id, v_verdict);
end;
$$;

comment on function treadle.fail_task(
  uuid, uuid, text, text, text, double precision, text, jsonb
) is 'Fail one task; raises an error if the claim was superseded.';

grant execute on function treadle.fail_tasks(
  uuid[], uuid[], text[], text[], text[], double precision[], text[], jsonb[]
) to treadle_worker;
grant execute on function
treadle.fail_task(uuid, uuid, text, text, text, double precision, text, jsonb) to treadle_worker;
