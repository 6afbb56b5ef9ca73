-- filled_template: what a schedule makes at a nominal time: its template with the time filled in.
--
-- {{nominal_at}} in any text is the moment in UTC, {{nominal_date}} the day in the schedule's zone.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.filled_template(
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

comment on function treadle.filled_template(treadle.schedules, timestamptz) is
'Internal: the template of a schedule for one nominal time.';

revoke all on function treadle.filled_template(treadle.schedules, timestamptz) from public;
