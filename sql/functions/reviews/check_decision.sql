-- check_decision: refuse a decision about dead letters that says too little, or things that clash.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_decision(
  p_decision  text,
  p_changes   jsonb,
  p_actor     text,
  p_note      text,
  p_delay_s   double precision default null,
  p_to        text default null
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_changes constant text[] := array[
    'spec', 'set', 'unset', 'queue', 'type', 'priority', 'max_attempts', 'timeout_s',
    'ageing_rate', 'capabilities', 'assigned_agent', 'retry', 'max_cost_usd', 'max_tokens',
    'on_budget', 'models', 'fallback_models', 'validation', 'report'
  ];
  v_wrong text;
  v_words text;
begin
  select rules.argument, rules.words
  into v_wrong, v_words
  from (
    values
    (
      'resolution',
      p_decision in ('retry', 'cancel', 'modify_and_retry', 'escalate'),
      format(
        'there is no resolution %s: it is retry, modify_and_retry, cancel or escalate',
        quote_nullable(left(p_decision, 60))
      )
    ),
    (
      'resolution',
      (p_decision = 'modify_and_retry') = (coalesce(p_changes, '{}') <> '{}'),
      format(
        'resolution %s does not go with changes %s', quote_nullable(left(p_decision, 60)),
        treadle.excerpt(p_changes)
      )
    ),
    (
      'delay_s',
      p_delay_s is null
      or (p_delay_s between 0 and 31536000 and p_decision in ('retry', 'modify_and_retry')),
      'a delay is 0 to 31536000 seconds, and goes with retry and modify_and_retry'
    ),
    (
      'to',
      case
        when p_decision = 'escalate'
          then coalesce(octet_length(btrim(p_to)) > 0 and octet_length(p_to) <= 200, false)
        else p_to is null
      end,
      'to is who is asked, in 1 to 200 bytes, and goes with escalate only'
    )
  ) as rules (argument, good, words)
  where rules.good is not true
  limit 1;
  if found then
    perform treadle.refuse(
      v_words, jsonb_build_object('argument', v_wrong),
      'Use retry or cancel without changes, modify_and_retry with some, or escalate to someone.'
    );
  end if;
  perform treadle.check_settings(coalesce(p_changes, '{}'), c_changes);
  perform treadle.check_actor(p_actor, p_note);
end;
$$;

comment on function treadle.check_decision(text, jsonb, text, text, double precision, text) is
'Internal: checks what is decided before anything is touched.';

revoke all on function treadle.check_decision(text, jsonb, text, text, double precision, text)
from public;
