-- record_token_use: record when a token was used, at most once a minute.
--
-- Concurrency: a second session finds the row updated, or locked, and does nothing.
-- Lock order:  api_tokens.

create or replace function treadle.record_token_use(p_id text)
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

comment on function treadle.record_token_use(text) is
'Record when a token was used last; returns whether the time was written.';

grant execute on function treadle.record_token_use(text) to treadle_operator;
