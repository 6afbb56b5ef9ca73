-- note_token_use: remember that a token was used; at most once a minute.
--
-- Concurrency: who comes second finds that it is written already, or that somebody writes it.
-- Lock order:  api_tokens.

create or replace function treadle.note_token_use(p_id text)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  update treadle.api_tokens
  set last_used_at = treadle.clock()
  where
    api_tokens.id = (
      select due.id
      from treadle.api_tokens as due
      where
        due.id = p_id
        and coalesce(due.last_used_at <= treadle.clock() - interval '1 minute', true)
      for no key update skip locked
    );
  return found;
end;
$$;

comment on function treadle.note_token_use(text) is
'Write down when a token was used last. Returns whether it was time to.';

grant execute on function treadle.note_token_use(text) to treadle_operator;
