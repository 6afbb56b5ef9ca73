-- archived_dags: ended DAGs that were pruned; their tasks are in archived_tasks.

create view treadle.archived_dags as
select
  dag_history.id,
  dag_history.name,
  dag_history.status,
  dag_history.created_at,
  dag_history.ended_at,
  dag_history.archived_at,
  dag_history.dag,
  dag_history.budgets,
  dag_history.events
from treadle.dag_history;

comment on view treadle.archived_dags is 'Pruned DAGs: the whole row in dag.';
comment on column treadle.archived_dags.id is 'Id of the DAG.';
comment on column treadle.archived_dags.name is 'Name of the DAG.';
comment on column treadle.archived_dags.status is 'State in which it ended.';
comment on column treadle.archived_dags.created_at is 'When it was created.';
comment on column treadle.archived_dags.ended_at is 'When the DAG ended.';
comment on column treadle.archived_dags.archived_at is 'When it was pruned to the archive.';
comment on column treadle.archived_dags.dag is 'The whole row of the DAG, as JSON.';
comment on column treadle.archived_dags.budgets is 'Its budgets, as JSON.';
comment on column treadle.archived_dags.events is 'Its events, as JSON.';

grant select on treadle.archived_dags to treadle_observer, treadle_operator;
