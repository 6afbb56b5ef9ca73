-- check_token: refuse a token that could not be used.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_token(p_token treadle.api_tokens)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
begin
  v_problem := case
    when coalesce((p_token).name !~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$', true) then
      'name has 1 to 100 letters, digits, dots, dashes, underscores and @'
    -- The name of callers on this host while there are no tokens.
    when (p_token).name = 'local' then 'name is not local, which is taken'
    when
      coalesce(cardinality((p_token).scopes), 0) = 0
      or not coalesce(
        (p_token).scopes <@ array['read', 'enqueue', 'work', 'operate', 'admin'], false
      ) then 'scopes are some of read, enqueue, work, operate, admin'
    when
      cardinality((p_token).queues) not between 1 and 100
      or exists (
        select
        from unnest((p_token).queues) as queues (name)
        where coalesce(octet_length(queues.name) not between 1 and 200, true)
      ) then 'queues are 1 to 100 names; without them it is for all'
    when octet_length((p_token).agent) not between 1 and 200 then 'agent has 1 to 200 bytes'
    when octet_length((p_token).project) not between 1 and 200 then 'project has 1 to 200 bytes'
    when (p_token).expires_at <= treadle.clock() then 'expires_s is a number of seconds above 0'
    when (p_token).expires_at > treadle.clock() + interval '100 years' then
      'expires_s is less than 100 years'
  end;
  if v_problem is not null then
    perform treadle.refuse(
      format('token %s: %s', left(quote_nullable((p_token).name), 60), v_problem),
      jsonb_build_object('argument', split_part(v_problem, ' ', 1)),
      'treadle token create --help shows examples.'
    );
  end if;
end;
$$;

comment on function treadle.check_token(treadle.api_tokens) is
'Internal: checks name, scopes, queues and the end of a token.';

revoke all on function treadle.check_token(treadle.api_tokens) from public;
