-- prune_tasks: let finished tasks go whose time is over, with all that belongs to them.
--
-- select * from treadle.prune_tasks();
--
-- It looks at a stretch of the table from p_after on and says where to go on; place is null at the
-- end of the table. No index is kept for this: a completion costs nothing more. What belongs
-- together goes together, see kin_of, and what is still needed stays, see pinned_tasks. A set that
-- cannot go does not stop the others: one of its tasks is in bad, and all of it stays when that id
-- is passed in p_skip.
--
-- Concurrency: rows locked by others are skipped, never waited for; all is judged again on the
--              locked rows. Any number may run at once.
-- Lock order:  tasks, dags, budgets, then the history.
-- Raises:      nothing.

create or replace function treadle.prune_tasks(
  p_after  tid default '(0,0)',
  p_limit  integer default 1000,
  p_skip   uuid[] default '{}',
  out place tid,
  out pruned integer,
  out kept integer,
  out bad uuid[],
  out problems text[]
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found treadle.found_tasks := treadle.find_prunable(p_after, p_limit, p_skip);
  v_all   uuid[];
  v_unit  uuid[];
begin
  place := v_found.place;
  pruned := 0;
  bad := '{}';
  problems := '{}';
  kept := cardinality(v_found.ids);
  if kept = 0 then
    return;
  end if;

  v_all := treadle.hold_prunable(
    treadle.unpinned(treadle.kin_of(v_found.ids, p_skip))
  );
  v_all := treadle.unpinned(v_all);
  begin
    pruned := treadle.prune_rows(v_all);
  exception when others then
    -- One of them is bad: each set that belongs together on its own, so that the rest go.
    while v_all <> '{}' loop
      v_unit := treadle.unit_of(v_all[1], v_all);
      begin
        pruned := pruned + treadle.prune_rows(v_unit);
      exception when others then
        bad := bad || v_unit[1];
        problems := problems || sqlerrm;
      end;
      v_all := array(
        select gone.id from unnest(v_all) as gone (id) where gone.id <> all (v_unit)
      );
    end loop;
  end;
  kept := greatest(kept - pruned, 0);
end;
$$;

comment on function treadle.prune_tasks(tid, integer, uuid[]) is
'Archive or drop finished tasks that their queues keep no longer; says where to go on.';

revoke all on function treadle.prune_tasks(tid, integer, uuid[]) from public;
grant execute on function treadle.prune_tasks(tid, integer, uuid[]) to treadle_worker;
