-- keep_feedback: keep what validators had against the outputs of attempts that have just ended.
--
-- The caller held their claims: what a superseded one says is not kept. At most 20 messages of 2000
-- characters each: they go into the prompt of the next attempt.
--
-- Concurrency: rows that this transaction has written.
-- Lock order:  attempts.
-- Raises:      TR001 invalid argument.

create or replace function treadle.keep_feedback(
  p_ids       uuid[],
  p_tokens    uuid[],
  p_feedback  jsonb[]
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.refuse(
    format('the feedback must be a list of texts, not %s', treadle.excerpt(given.messages)),
    jsonb_build_object('argument', 'feedback'), 'For example ["the summary is empty"].'
  )
  from unnest(p_feedback) as given (messages)
  where
    jsonb_typeof(given.messages) <> 'array'
    or jsonb_path_exists(given.messages, '$[*] ? (@.type() <> "string")');

  update treadle.attempts
  set
    feedback = (
      select jsonb_agg(left(said.message, 2000) order by said.at)
      from jsonb_array_elements_text(given.messages) with ordinality as said (message, at)
      where said.at <= 20
    )
  from unnest(p_ids, p_tokens, p_feedback) as given (id, token, messages)
  where
    attempts.task_id = given.id
    and attempts.claim_token = given.token
    and given.messages is not null;
end;
$$;

comment on function treadle.keep_feedback(uuid[], uuid[], jsonb[]) is
'Internal: puts the words of validators next to the attempts they are about.';

revoke all on function treadle.keep_feedback(uuid[], uuid[], jsonb[]) from public;
