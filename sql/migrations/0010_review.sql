-- 0010_review: dead letters in groups of one kind, and every decision about them for good.

alter table treadle.dead_letters
add column about text,
add column fingerprint text,
add column escalated_at timestamptz,
add column escalated_to text,
add constraint dead_letters_escalation_check check (
  num_nonnulls(escalated_at, escalated_to) in (0, 2)
);

comment on column treadle.dead_letters.about is
'The error without what differs from case to case; see error_about.';
comment on column treadle.dead_letters.fingerprint is
'The group: letters of one class with the same error.';

-- What error_line, error_about and error_fingerprint say, for the letters that are there.
do $$
declare
  c_code  constant text := '(http(/[0-9.]+)?|status|code|errno|error)[^a-z0-9]{0,3}';
  c_rules constant text[][] := array[
    -- Between quotes that stand like quotes; not the one in: isn't.
    ['(?<![a-z0-9_])''(?![1-5][0-9]{2} )(\\.|[^''\\])*''(?![a-z0-9_])', '<text>'],
    ['(?<![a-z0-9_])"(?![1-5][0-9]{2} )(\\.|[^"\\])*"(?![a-z0-9_])', '<text>'],
    ['`[^`]*`|“[^”]*”|«[^»]*»', '<text>'],
    ['[a-z][a-z0-9+.-]*://[^\s''"<>()]+', '<url>'],
    ['[a-z0-9._%+-]+@[a-z0-9-]+(\.[a-z0-9-]+)+', '<email>'],
    ['[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.,]+(Z|[+-][0-9:]+)?)?', '<time>'],
    ['(?<![a-z0-9_.<>/])(~|\.{1,2}|[a-z]:)?([/\\][^\s/\\:,;''"()<>]+)+[/\\]?', '<path>'],
    ['(?<![a-z0-9_.<>/-])[a-z0-9_.-]+(/[a-z0-9_.-]+)+\.[a-z][a-z0-9]{0,7}(?![a-z0-9_])', '<path>'],
    -- Ids of all kinds: from 0x.., of hexadecimal digits, or long and with three digits.
    ['0x[0-9a-f]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', '<n>'],
    ['(?<![a-z0-9])(?=[a-f]*[0-9])[0-9a-f]{8,}(?![a-z0-9])', '<n>'],
    ['(?<![a-z0-9_])(?=([a-z_-]*[0-9]){3})[a-z0-9_-]{12,}(?![a-z0-9_])', '<n>'],
    ['(?<!' || c_code || ')(?<![0-9])[0-9]+([.,:][0-9]+)*', '<n>'],
    ['(?<=' || c_code || ')(?![1-5][0-9]{2}(?![a-z0-9]))[0-9]+([.,:][0-9]+)*', '<n>'],
    ['(?<![a-z0-9>])-(?=<n>)', ''],
    ['(<[a-z]+>)([,;]?\s?\1)+', '\1']
  ];
  v_letter record;
  v_error  text;
  v_line   text;
  v_frame  bigint;
begin
  for v_letter in
    select dead_letters.id, dead_letters.task_id, dead_letters.class, dead_letters.reason,
      dead_letters.dead_lettered_at
    from treadle.dead_letters
  loop
    select case when attempts.error ~ '\S' then attempts.error else attempts.reason end
    into v_error
    from treadle.attempts
    where
      attempts.task_id = v_letter.task_id and attempts.ended_at = v_letter.dead_lettered_at;
    v_error := left(coalesce(v_error, v_letter.reason, v_letter.class), 30000);
    select max(line.at) filter (where line.words ~ '^\s' and line.words ~ '\S')
    into v_frame
    from regexp_split_to_table(v_error, '\r?\n') with ordinality as line (words, at)
    where v_error ~ '^\n*Traceback \(most recent call last\)';
    select line.words into v_line
    from regexp_split_to_table(v_error, '\r?\n') with ordinality as line (words, at)
    where line.words ~ '\S'
    order by line.at > coalesce(v_frame, 0) desc, line.at
    limit 1;
    v_line := left(v_line, 1000);
    for v_at in 1..array_length(c_rules, 1) loop
      v_line := regexp_replace(v_line, c_rules[v_at][1], c_rules[v_at][2], 'gi');
    end loop;
    v_line := coalesce(
      nullif(left(btrim(regexp_replace(v_line, '\s+', ' ', 'g')), 300), ''), v_letter.class
    );
    update treadle.dead_letters
    set about = v_line, fingerprint = left(md5(v_letter.class || e'\n' || v_line), 12)
    where dead_letters.id = v_letter.id;
  end loop;
end;
$$;

alter table treadle.dead_letters
alter column about set not null,
alter column fingerprint set not null;

create index dead_letters_group_idx on treadle.dead_letters (fingerprint, dead_lettered_at)
where resolution is null;

-- No key to a letter or a task: decisions stay when those are gone.
create table treadle.dead_letter_decisions (
  id            bigint not null generated always as identity,
  at            timestamptz not null default clock_timestamp(),
  letter_id     uuid not null,
  task_id       uuid not null,
  decision      text not null,
  actor         text not null,
  note          text,
  changes       jsonb,
  delay_s       double precision,
  escalated_to  text,
  queue         text not null,
  type          text not null,
  class         text not null,
  fingerprint   text not null,
  about         text not null,
  constraint dead_letter_decisions_pkey primary key (id),
  constraint dead_letter_decisions_decision_check check (
    decision in ('retry', 'cancel', 'modify_and_retry', 'escalate')
  ),
  constraint dead_letter_decisions_to_check check (
    (escalated_to is not null) = (decision = 'escalate')
  )
);

comment on table treadle.dead_letter_decisions is
'Append-only: what people decided about dead letters, when and why; it outlives the tasks.';

create index dead_letter_decisions_task_idx on treadle.dead_letter_decisions (task_id);

insert into treadle.dead_letter_decisions (
  at, letter_id, task_id, decision, actor, note, changes, queue, type, class, fingerprint, about
)
select
  dead_letters.resolved_at,
  dead_letters.id,
  dead_letters.task_id,
  dead_letters.resolution,
  dead_letters.reviewer,
  dead_letters.note,
  dead_letters.changes,
  tasks.queue,
  tasks.type,
  dead_letters.class,
  dead_letters.fingerprint,
  dead_letters.about
from treadle.dead_letters
inner join treadle.tasks on dead_letters.task_id = tasks.id
where dead_letters.resolution is not null
order by dead_letters.resolved_at;

-- What was given by id, the letter that it means, and whether that waited for a decision.
create type treadle.letter as (
  id         uuid,
  letter_id  uuid,
  task_id    uuid,
  queue      text,
  type       text,
  is_open    boolean
);

drop function if exists treadle.resolve_task(uuid, text, jsonb, text, text);
drop function if exists treadle.retry_bulk(treadle.bulk_task[], text, text);
drop function if exists treadle.retry_wave(treadle.bulk_task[], text, text);
