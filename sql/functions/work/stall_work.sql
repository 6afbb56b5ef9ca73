-- stall_work: block work items that their agents have said nothing about for too long.
--
-- Concurrency: the caller holds the rows.
-- Lock order:  tasks, then the history.
-- Raises:      nothing.

create or replace function treadle.stall_work(p_rows tid[], p_now timestamptz)
returns table (id uuid, status text)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_task treadle.tasks;
  v_note text;
  v_over integer;
begin
  for v_task in
    select tasks.* from treadle.tasks where tasks.ctid = any (p_rows) order by tasks.id
  loop
    v_note := format(
      'timed out: no update by %s since %s', v_task.agent_id,
      treadle.utc_words(v_task.heartbeat_at)
    );
    -- So many letters are at least so many bytes; four are for the sign in their place and a line.
    v_over := octet_length(v_task.notes) + octet_length(v_note) + 4 - 20000;
    perform treadle.put_aside(v_task, 'blocked', 0, null, p_now);
    update treadle.tasks
    -- As many bytes as update_work takes; the oldest give way, and are in the log.
    set notes = concat_ws(
      e'\n',
      case
        when v_over > 0 then '…' || substr(v_task.notes, v_over + 1)
        else nullif(v_task.notes, '')
      end,
      v_note
    )
    where tasks.id = v_task.id;
    perform treadle.log_work(
      v_task.id, 'reaper', 'in_progress', 'blocked', v_task.agent_id, v_note, p_kind => 'stale',
      p_at => p_now
    );
    id := v_task.id;
    status := 'blocked';
    return next;
  end loop;
end;
$$;

comment on function treadle.stall_work(tid[], timestamptz) is
'Internal: turns stale work items into blocked ones, with a note and an event.';

revoke all on function treadle.stall_work(tid[], timestamptz) from public;
