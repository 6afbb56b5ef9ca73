-- take_actions: write decisions to the action log and return those to be executed now.
--
-- These are new results, oldest first, and failed callbacks that are due again. A task that is
-- already in the log is not returned a second time. A repeated call with the same token returns
-- the same actions. An output that is not a decision is returned as it is. p_redeliver
-- says that the callback may be called again if this harness stops before it has recorded the
-- outcome.
--
-- Concurrency: rows locked by another session are skipped; the primary key of the log prevents
-- duplicates.
-- Lock order:  tasks, harness_actions.
-- Raises:      TR001 invalid argument.

create or replace function treadle.take_actions(
  p_token      uuid,
  p_limit      integer default 10,
  p_lease_s    double precision default 60,
  p_redeliver  boolean default false
)
returns table (
  id uuid, agent_url text, payload jsonb, decision jsonb, tries integer, retry_count integer,
  created_at timestamptz, completed_at timestamptz
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := treadle.clock();
  v_until timestamptz := v_now + make_interval(secs => p_lease_s);
  v_again integer;
begin
  if p_token is null
    or not coalesce(p_limit between 1 and 1000 and p_lease_s between 1 and 3600, false) then
    perform treadle.raise_error(
      'token is required, limit must be 1 to 1000 and the lease 1 to 3600 seconds',
      jsonb_build_object('argument', 'limit')
    );
  end if;
  perform treadle.ensure_durable();

  if not exists (
    select from treadle.harness_actions
    where harness_actions.status = 'executing' and harness_actions.token = p_token
  ) then
    update treadle.harness_actions
    set
      status = 'executing', tries = harness_actions.tries + 1, token = p_token,
      redeliver = p_redeliver, lease_until = v_until, next_try_at = null, started_at = v_now
    where harness_actions.ctid = any (
      array(
        select due.ctid
        from treadle.harness_actions as due
        where due.status = 'waiting' and due.next_try_at <= v_now
        order by due.next_try_at
        limit p_limit
        for update skip locked
      )
    );
    get diagnostics v_again = row_count;

    insert into treadle.harness_actions (
      task_id, token, redeliver, lease_until, started_at, decision
    )
    select done.id, p_token, p_redeliver, v_until, v_now, coalesce(done.output, 'null')
    from (
      select tasks.id, tasks.output, tasks.completed_at
      from treadle.results
      inner join treadle.tasks on results.task_id = tasks.id
      where
        results.consumer = 'harness' and results.consumed_token is null
        and tasks.queue = 'harness' and tasks.assigned_agent is not null
        and not exists (
          select from treadle.harness_actions where harness_actions.task_id = tasks.id
        )
      order by results.completed_at
      limit p_limit - v_again
      for update of tasks skip locked
    ) as done
    on conflict (task_id) do nothing;
  end if;

  return query
  select
    tasks.id, tasks.assigned_agent, tasks.spec, harness_actions.decision, harness_actions.tries,
    greatest(tasks.attempt - 1, 0), tasks.created_at, tasks.completed_at
  from treadle.harness_actions
  inner join treadle.tasks on harness_actions.task_id = tasks.id
  where harness_actions.status = 'executing' and harness_actions.token = p_token
  order by tasks.completed_at, tasks.id;
end;
$$;

comment on function treadle.take_actions(uuid, integer, double precision, boolean) is
'Take harness results to act on: each is in the action log before it is returned.';

grant execute on function treadle.take_actions(uuid, integer, double precision, boolean) to
treadle_producer;
