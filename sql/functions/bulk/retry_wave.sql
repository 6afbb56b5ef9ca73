-- retry_wave: give some tasks another round; one that cannot have it does not stop the others.
--
-- Concurrency: the caller holds the tasks.
-- Lock order:  lanes, then the history.
-- Raises:      nothing.

create or replace function treadle.retry_wave(
  p_wave        treadle.bulk_task[],
  p_actor       text,
  p_note        text,
  p_resolution  text default 'retry',
  p_changes     jsonb default '{}',
  p_delay_s     double precision default null
)
returns treadle.bulk_task[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wave treadle.bulk_task[] := p_wave;
begin
  begin
    perform treadle.resolve_task(
      each.id, p_resolution, p_changes, p_actor, p_note, p_delay_s
    )
    from unnest(v_wave) as each;
    return v_wave;
  exception
    when sqlstate 'TR000' then
      null;
  end;

  -- One of them is refused: each on its own, so that the rest go through.
  for v_at in 1..cardinality(v_wave) loop
    begin
      perform treadle.resolve_task(
        v_wave[v_at].id, p_resolution, p_changes, p_actor, p_note, p_delay_s
      );
    exception
      when sqlstate 'TR000' then
        v_wave[v_at].verdict := 'refused';
        v_wave[v_at].why := sqlerrm;
    end;
  end loop;
  return v_wave;
end;
$$;

comment on function treadle.retry_wave(
  treadle.bulk_task[], text, text, text, jsonb, double precision
) is 'Internal: restarts tasks that wait for nothing that is cancelled.';

revoke all on function treadle.retry_wave(
  treadle.bulk_task[], text, text, text, jsonb, double precision
) from public;
