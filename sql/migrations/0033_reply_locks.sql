-- 0033_reply_locks: a request that is being answered has a row without an answer: its lock.

alter table treadle.replies
alter column status drop not null,
alter column body drop not null,
add constraint replies_answer_check check ((status is null) = (body is null));

comment on column treadle.replies.status is
'Of HTTP; empty where the request was begun and its answer was never stored.';
