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

grant select on treadle.archived_dags to treadle_observer, treadle_operator;
