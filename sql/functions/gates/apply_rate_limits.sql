-- apply_rate_limits: close the gates of attempts that ended with a rate limit, and delay their
-- tasks.
--
-- Concurrency: the caller has locked the tasks.
-- Lock order:  gates by key, after tasks, breakers and budgets.

-- slowdown_s: return how many seconds a gate stays closed after a number of rate limits in a row.
create or replace function treadle.slowdown_s(p_times integer)
returns double precision
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select least(60 * power(2::float8, least(greatest(p_times, 1), 30) - 1), 3600)
    * (1 + 0.1 * random())
$$;

-- gate_of: return the gate that a rate limit of a task closes.
create or replace function treadle.gate_of(p_task treadle.tasks, p_key text)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (select p_key where p_key = any (lanes.gates)),
    (
      select named.key
      from unnest(
        coalesce(nullif((treadle.options_of(p_task)).gates, '{}'), task_types.gates)
      ) with ordinality as named (key, at)
      where named.key = any (lanes.gates)
      order by named.at
      limit 1
    ),
    'type:' || p_task.type
  )
  from treadle.lanes
  inner join treadle.task_types on lanes.type = task_types.name
  where lanes.id = p_task.lane_id
$$;

-- http_date_in: return the first HTTP date in a text after words that match a pattern.
--
-- A day that its month does not have is a day of the next month, so that no text is an error.
create or replace function treadle.http_date_in(p_text text, p_before text)
returns timestamptz
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select
    (
      make_timestamp(
        -- The old form of these dates has a year of two digits.
        case when length(found.parts[3]) = 2 then 2000 else 0 end + found.parts[3]::integer,
        (strpos('janfebmaraprmayjunjulaugsepoctnovdec', lower(found.parts[2])) + 2) / 3,
        1, found.parts[4]::integer, found.parts[5]::integer, found.parts[6]::integer
      )
      + make_interval(days => found.parts[1]::integer - 1)
    ) at time zone 'UTC'
  from regexp_match(
    left(p_text, 20000),
    p_before || '["'']?\s*[:=]?\s*b?["'']?(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},? '
    '([0-3]?[0-9])[ -](jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[ -]([12][0-9]{3}|[0-9]{2}) '
    '([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60) (?:gmt|utc|[+-]0000)',
    'i'
  ) as found (parts)
$$;

-- retry_after_in: return the seconds that a text asks to wait; null if it names none.
--
-- A date refers to the clock of the sender: to the Date header if the text has it, else to p_now.
create or replace function treadle.retry_after_in(p_text text, p_now timestamptz)
returns double precision
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (
      select found.parts[1]::float8 * case
        when found.parts[2] ~* '^(ms|milli)' then 0.001
        when found.parts[2] ~* '^m' then 60
        when found.parts[2] ~* '^h' then 3600
        else 1
      end
      from regexp_match(
        left(p_text, 20000),
        '(?:retry[-_ ]?after|(?:try|retry) again in)["'']?\s*[:=]?\s*["'']?'
        '([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(ms|milli[a-z]*|min[a-z]*|m\M|h\M|hours?)?',
        'i'
      ) as found (parts)
    ),
    (
      select
        greatest(
          0,
          extract(
            epoch from said.at - coalesce(treadle.http_date_in(p_text, '\mdate'), p_now)
          )::float8
        )
      from treadle.http_date_in(p_text, 'retry[-_ ]?after') as said (at)
      where said.at is not null
    )
  )
$$;

-- close_rate_limited_gate: close a gate after a rate limit.
--
-- Concurrency: updates the gate, so that a transaction with an older snapshot fails.
-- Lock order:  gates.
create or replace function treadle.close_rate_limited_gate(
  p_key      text,
  p_after_s  double precision,
  p_task     uuid,
  p_agent    text,
  p_now      timestamptz
)
returns timestamptz
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gate  treadle.gates;
  v_new   boolean;
  v_until timestamptz;
begin
  insert into treadle.gates (key) values (p_key) on conflict (key) do nothing;
  select gates.* into v_gate from treadle.gates where gates.key = p_key for no key update;
  -- Attempts that were running when the gate closed report the same rate limit again.
  v_new := not coalesce(v_gate.slowed_until > p_now, false);
  v_until := greatest(
    v_gate.closed_until,
    case
      when p_after_s >= 0 and p_after_s < 'NaN'
        then p_now + make_interval(secs => least(p_after_s, 86400))
      when v_new then p_now + make_interval(secs => treadle.slowdown_s(v_gate.slowdowns + 1))
    end
  );
  if not v_new and v_until is not distinct from v_gate.closed_until then
    return v_until;
  end if;

  update treadle.gates
  set
    closed_until = v_until,
    closed_at = p_now,
    closed_by = p_agent,
    reason = 'closed by a rate limit',
    slowed_until = v_until,
    slowdowns = gates.slowdowns + v_new::integer
  where gates.key = p_key;
  if v_until > p_now then
    insert into treadle.events (at, kind, actor, data)
    values (
      p_now, 'gate.closed', p_agent,
      jsonb_build_object(
        'key', p_key, 'until', v_until, 'reason', 'closed by a rate limit',
        'task_id', p_task, 'slowdowns', v_gate.slowdowns + v_new::integer
      )
    );
    perform treadle.notify_slowdown(p_key, v_until, p_now);
  end if;
  return v_until;
end;
$$;

create or replace function treadle.apply_rate_limits(
  p_ended  treadle.ended_attempt[],
  p_keys   text[],
  p_after  double precision[],
  p_now    timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_each  record;
  v_until timestamptz;
begin
  for v_each in
    select
      tasks.id,
      (p_ended[given.at]).agent_id as agent,
      (p_ended[given.at]).next as next,
      treadle.gate_of(tasks, p_keys[given.at]) as gate,
      coalesce(
        p_after[given.at], treadle.retry_after_in((p_ended[given.at]).error, p_now)
      ) as after_s
    from generate_series(1, cardinality(p_ended)) as given (at)
    inner join treadle.tasks on (p_ended[given.at]).task_id = tasks.id
    where (p_ended[given.at]).class = 'rate_limit'
    order by gate, tasks.id
  loop
    v_until := treadle.close_rate_limited_gate(
      v_each.gate, v_each.after_s, v_each.id, v_each.agent, p_now
    );
    update treadle.tasks
    set retry_at = greatest(v_until, p_now)
    where tasks.id = v_each.id and v_each.next = 'retrying' and v_until is not null;
  end loop;
end;
$$;

-- reset_slowdowns: reset the slowdown counter of gates behind which a task has succeeded since
-- they opened.
--
-- Concurrency: called only while a gate counts slowdowns.
-- Lock order:  gates by key, after tasks, breakers and budgets.
create or replace function treadle.reset_slowdowns(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_keys text[] := array(
    select distinct gates.key
    from treadle.tasks
    inner join treadle.lanes on tasks.lane_id = lanes.id
    inner join treadle.gates on gates.key = any (lanes.gates)
    where
      tasks.id = any (p_ids) and gates.slowdowns > 0 and tasks.claimed_at >= gates.slowed_until
  );
begin
  if v_keys <> '{}' then
    perform gates.key from treadle.gates
    where gates.key = any (v_keys)
    order by gates.key
    for no key update;
    update treadle.gates
    set slowdowns = 0
    where gates.key = any (v_keys) and gates.slowed_until <= treadle.clock();
  end if;
end;
$$;
