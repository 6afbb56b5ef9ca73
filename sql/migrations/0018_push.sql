-- 0018_push: the entries of queue `push` that have not ended, in the order of their claims.
--
-- The queue is listed and counted at every look at it, and among many tasks its few must be found.
-- Tasks of other queues are not in the index.

create index tasks_push_idx on treadle.tasks (rank, id)
where queue = 'push' and completed_at is null;
