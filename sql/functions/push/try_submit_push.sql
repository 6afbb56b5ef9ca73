-- try_submit_push: add a prompt to queue `push`; a full queue is returned as a problem.
--
-- Concurrency: as submit_push.
-- Lock order:  as submit_push.
-- Raises:      TR001 invalid argument, TR002 too large.

create or replace function treadle.try_submit_push(
  p_request       jsonb,
  p_source        text,
  p_job           text default null,
  p_max_depth     integer default null,
  p_max_attempts  integer default null
)
returns table (
  queue_id text, id uuid, "position" integer, state text, depth integer, problem jsonb -- noqa: RF06
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_detail text;
  v_hint   text;
begin
  return query
  select made.queue_id, made.id, made.position, made.state, made.depth, null::jsonb
  from treadle.submit_push(p_request, p_source, p_job, p_max_depth, p_max_attempts) as made;
exception
  when sqlstate 'TR105' then
    get stacked diagnostics v_detail = pg_exception_detail, v_hint = pg_exception_hint;
    problem := treadle.problem(sqlstate, sqlerrm, v_detail, v_hint);
    return next;
end;
$$;

comment on function treadle.try_submit_push(jsonb, text, text, integer, integer) is
'Queue a prompt for the push agents; returns its position, or the problem if the queue is full.';

grant execute on function treadle.try_submit_push(jsonb, text, text, integer, integer) to
treadle_producer, treadle_worker;
