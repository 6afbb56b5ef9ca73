-- letter_facts: what the event of a dead letter says about it.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.letter_facts(p_letter treadle.dead_letters)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select
    jsonb_build_object(
      'letter_id', p_letter.id,
      'class', p_letter.class,
      'reason', left(p_letter.reason, 500),
      'attempts', p_letter.attempts,
      'total_cost_usd', p_letter.total_cost_usd,
      'poison_pill', p_letter.poison_pill,
      'fingerprint', p_letter.fingerprint
    )
$$;

comment on function treadle.letter_facts(treadle.dead_letters) is
'Internal: class, reason, attempts, cost and group of a dead letter as json.';

revoke all on function treadle.letter_facts(treadle.dead_letters) from public;
