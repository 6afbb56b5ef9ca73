-- decided_words: who decided about a dead letter, and what.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.decided_words(p_letter uuid)
returns text
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select
    format(
      '%s decided %s at %s%s', dead_letters.reviewer, dead_letters.resolution,
      treadle.utc_words(dead_letters.resolved_at), coalesce(': ' || dead_letters.note, '')
    )
  from treadle.dead_letters
  where dead_letters.id = p_letter and dead_letters.resolution is not null
$$;

comment on function treadle.decided_words(uuid) is
'Internal: the decision about a letter in a sentence; null while there is none.';

revoke all on function treadle.decided_words(uuid) from public;
