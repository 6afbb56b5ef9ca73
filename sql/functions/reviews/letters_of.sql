-- letters_of: the dead letters that some ids mean: of a letter, or of a task.
--
-- A task stands for its letter that waits for a decision, else for its last one.
--
-- Concurrency: the caller holds the tasks; this is a statement of its own, to see them as they are.
-- Lock order:  none.
-- Raises:      nothing; an id that is neither comes without a letter.

create or replace function treadle.letters_of(p_ids uuid[])
returns treadle.letter[]
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  select
    array(
      select
        row(
          given.id, meant.id, meant.task_id, tasks.queue, tasks.type,
          coalesce(meant.resolution is null, false) and meant.id is not null
        )::treadle.letter
      from (select distinct each.id from unnest(p_ids) as each (id)) as given
      left join lateral (
        select dead_letters.*
        from treadle.dead_letters
        where dead_letters.id = given.id or dead_letters.task_id = given.id
        order by dead_letters.resolution is null desc, dead_letters.dead_lettered_at desc
        limit 1
      ) as meant on true
      left join treadle.tasks on meant.task_id = tasks.id
      order by meant.task_id
    )
$$;

comment on function treadle.letters_of(uuid[]) is
'Internal: for each id the letter that it means, and whether that waits for a decision.';

revoke all on function treadle.letters_of(uuid[]) from public;
