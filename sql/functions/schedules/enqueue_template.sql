-- enqueue_template: enqueue the task or the DAG of a schedule for one nominal time.
--
-- The origin of the tasks is the schedule. created is false if the template has a key and a task or
-- DAG with this key exists. Tasks for a dispatch queue are submitted to it.
--
-- Concurrency: part of the caller's transaction.
-- Lock order:  as enqueue_tasks or create_dag.
-- Raises:      what those raise.

-- render_schedule_template: return the template of a schedule with a nominal time filled in.
--
-- {{nominal_at}} in any text is the time in UTC, {{nominal_date}} the date in the schedule's time
-- zone.
create or replace function treadle.render_schedule_template(
  p_schedule  treadle.schedules,
  p_nominal   timestamptz
)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case
      when strpos(p_schedule.template::text, '{{nominal_') = 0 then p_schedule.template
      else replace(
        replace(
          p_schedule.template::text,
          '{{nominal_at}}',
          to_char(p_nominal at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        ),
        '{{nominal_date}}',
        to_char(p_nominal at time zone p_schedule.timezone, 'YYYY-MM-DD')
      )::jsonb
    end
$$;

-- run_start_at: return when the task of a nominal time may start: up to jitter_s later, always the
-- same.
create or replace function treadle.run_start_at(
  p_schedule  treadle.schedules,
  p_nominal   timestamptz
)
returns timestamptz
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select
    p_nominal + make_interval(
      secs => mod(
        hashtextextended(p_schedule.id::text, extract(epoch from p_nominal)::bigint)
        & 9223372036854775807,
        p_schedule.jitter_s * 1000
      ) / 1000.0
    )
  where p_schedule.jitter_s > 0
$$;

create or replace function treadle.enqueue_template(
  p_schedule   treadle.schedules,
  p_nominal    timestamptz,
  out task_id  uuid,
  out dag_id   uuid,
  out created  boolean
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_template jsonb := treadle.render_schedule_template(p_schedule, p_nominal);
  v_task     jsonb := v_template -> 'task';
  v_dag      jsonb := v_template -> 'dag';
  v_author   text := p_schedule.created_by;
  v_origin   jsonb := treadle.origin('schedule', p_schedule.name) || jsonb_strip_nulls(
    jsonb_build_object('run_at', treadle.run_start_at(p_schedule, p_nominal))
  );
begin
  if treadle.assignment_of(v_task ->> 'queue') = 'dispatch' then
    v_task := treadle.push_template(v_task);
  end if;
  if v_dag is null then
    select made.id, made.created
    into task_id, created
    from treadle.enqueue_tasks(
      jsonb_build_array(v_origin || jsonb_build_object('created_by', v_author) || v_task)
    ) as made;
    return;
  end if;

  select made.dag_id, made.created
  into dag_id, created
  from treadle.create_dag(
    jsonb_build_object('name', p_schedule.name, 'created_by', v_author)
    || v_dag
    || jsonb_build_object(
      'defaults', v_origin || coalesce(v_dag -> 'defaults', '{}'),
      'meta', jsonb_build_object('schedule', p_schedule.name, 'nominal_at', p_nominal)
      || coalesce(v_dag -> 'meta', '{}')
    )
  ) as made;
end;
$$;
