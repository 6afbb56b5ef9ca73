-- retry_wave: give some tasks another round; one that cannot have it does not stop the others.
--
-- Concurrency: the caller holds the tasks.
-- Lock order:  lanes, then the history.
-- Raises:      nothing.

create or replace function treadle.retry_wave(
  p_wave   treadle.bulk_task[],
  p_actor  text,
  p_note   text
)
returns treadle.bulk_task[]
language plpgsql
volatile
set search_path = ''
as $$
declare
  v_wave treadle.bulk_task[] := p_wave;
begin
  begin
    perform treadle.resolve_task(each.id, 'retry', '{}', p_actor, p_note)
    from unnest(v_wave) as each;
    return v_wave;
  exception
    when sqlstate 'TR000' then
      null;
  end;

  -- One of them is refused: each on its own, so that the rest go through.
  for v_at in 1..cardinality(v_wave) loop
    begin
      perform treadle.resolve_task(v_wave[v_at].id, 'retry', '{}', p_actor, p_note);
    exception
      when sqlstate 'TR000' then
        v_wave[v_at].verdict := 'refused';
        v_wave[v_at].why := sqlerrm;
    end;
  end loop;
  return v_wave;
end;
$$;

comment on function treadle.retry_wave(treadle.bulk_task[], text, text) is
'Internal: restarts tasks that wait for nothing that is cancelled.';

revoke all on function treadle.retry_wave(treadle.bulk_task[], text, text) from public;
