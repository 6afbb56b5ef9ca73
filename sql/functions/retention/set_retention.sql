-- set_retention: set how long events, agents or runs are kept; null means forever.
--
-- select treadle.set_retention('events', 30 * 86400);
--
-- Events are kept at least until every reader has read them. agents counts from the last
-- heartbeat. runs is the history of schedules and triggers. The retention of tasks is a setting
-- of their queue; see define_queue.
--
-- Lock order:  retention, then the history.
-- Raises:      TR001 invalid argument.

create or replace function treadle.set_retention(
  p_kind    text,
  p_keep_s  double precision,
  p_actor   text default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_kind is null or p_kind not in ('events', 'agents', 'runs') then
    perform treadle.raise_error(
      format('there is no retention setting %s', left(quote_nullable(p_kind), 60)),
      jsonb_build_object('argument', 'kind'),
      'Use events, agents or runs; for tasks see treadle.define_queue.'
    );
  end if;
  if not coalesce(p_keep_s between 0 and 3153600000, true) then
    perform treadle.raise_error(
      format('%s is not a valid number of seconds', p_keep_s),
      jsonb_build_object('argument', 'keep_s'),
      'Pass 0 to 3153600000 seconds, or null to keep them forever.'
    );
  end if;

  if p_keep_s is null then
    delete from treadle.retention where retention.kind = p_kind;
  else
    insert into treadle.retention (kind, keep_s) values (p_kind, p_keep_s)
    on conflict (kind) do update set keep_s = excluded.keep_s
    where retention.keep_s <> excluded.keep_s;
  end if;
  if found then
    insert into treadle.events (at, kind, actor, data)
    values (
      treadle.clock(), 'retention.set', coalesce(p_actor, session_user),
      jsonb_build_object('kind', p_kind, 'keep_s', p_keep_s)
    );
  end if;
end;
$$;

comment on function treadle.set_retention(text, double precision, text) is
'Keep events, agents or runs for a number of seconds; null keeps them forever.';

grant execute on function treadle.set_retention(text, double precision, text) to treadle_operator;
