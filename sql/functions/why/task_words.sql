-- task_words: what to call a task: its name in its DAG, else its type and the end of its id.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.task_words(p_id uuid, p_name text, p_type text)
returns text
language sql
immutable
parallel safe
return coalesce(p_name, p_type || ' …' || pg_catalog.right(p_id::pg_catalog.text, 8));

comment on function treadle.task_words(uuid, text, text) is 'Internal: a task in a word or two.';

revoke all on function treadle.task_words(uuid, text, text) from public;
grant execute on function treadle.task_words(uuid, text, text) to
treadle_observer, treadle_operator;
