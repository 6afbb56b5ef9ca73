-- attempt_model: the model that an attempt used: what it has paid for last, else what it was told.
--
-- Concurrency: the caller holds the task.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.attempt_model(p_task treadle.tasks)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    coalesce(
      (
        select spend.model
        from treadle.spend
        where
          spend.task_id = p_task.id
          and spend.attempt = p_task.attempt
          and spend.at >= p_task.claimed_at
          and spend.model is not null
        order by spend.at desc
        limit 1
      ),
      (treadle.terms_of(p_task)).models[1]
    )
$$;

comment on function treadle.attempt_model(treadle.tasks) is
'Internal: the model of an attempt that ends now; empty when nobody named one.';

revoke all on function treadle.attempt_model(treadle.tasks) from public;
