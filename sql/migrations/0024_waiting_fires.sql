-- 0024_waiting_fires: a trigger that met a full queue tries again; who was forked from a task.

alter table treadle.trigger_fires
drop constraint trigger_fires_verdict_check,
add constraint trigger_fires_verdict_check check (
  verdict in ('fired', 'waiting', 'refused', 'failed')
);

create index trigger_fires_waiting_idx on treadle.trigger_fires (trigger_id, event_id)
where verdict = 'waiting';

create index tasks_forks_idx on treadle.tasks (forked_from)
where forked_from is not null;

-- It says in which store a file lies.
drop function if exists treadle.doomed_artifacts(integer, double precision, uuid, boolean);

-- What triggers did long ago is for the pruner alone.
drop function if exists treadle.tend_triggers(timestamptz);
