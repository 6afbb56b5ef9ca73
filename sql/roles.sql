-- roles: the least-privilege roles of treadle. They belong to the cluster, not to one database.
--
-- treadle_owner     owns every object, never logs in
-- treadle_producer  enqueues, cancels what it enqueued, reads results
-- treadle_worker    claims, heartbeats and finishes tasks
-- treadle_observer  reads the views
-- treadle_operator  everything above, and decides: retry, pause, drain
--
-- Safe to repeat, also by two sessions at once. Grant them: grant treadle_worker to alice;
--
-- No role of treadle needs temporary objects. Every login may create them unless the database
-- says otherwise; where no other program needs them, take the right away:
--   revoke temporary on database app from public;

do $$
declare
  v_role text;
begin
  foreach v_role in array array[
    'treadle_owner', 'treadle_producer', 'treadle_worker', 'treadle_observer', 'treadle_operator'
  ]
  loop
    if not exists (select from pg_catalog.pg_roles where pg_roles.rolname = v_role) then
      begin
        execute format('create role %I nologin', v_role);
      exception
        -- Another session, perhaps migrating another database, was first.
        when duplicate_object or unique_violation then null;
        when insufficient_privilege then
          raise exception using
            errcode = 'TR305',
            message = format('role %s is missing, %s may not create roles', v_role, current_user),
            detail = jsonb_build_object('role', v_role)::text,
            hint = 'Let a role with CREATEROLE run sql/roles.sql once, then migrate again.';
      end;
    end if;
  end loop;

  -- Each grant only when it is missing: granting writes the shared catalog.
  if not pg_catalog.pg_has_role('treadle_operator', 'treadle_producer', 'member') then
    grant treadle_producer to treadle_operator;
  end if;
  if not pg_catalog.pg_has_role('treadle_operator', 'treadle_worker', 'member') then
    grant treadle_worker to treadle_operator;
  end if;
  if not pg_catalog.pg_has_role('treadle_operator', 'treadle_observer', 'member') then
    grant treadle_observer to treadle_operator;
  end if;
  -- From PostgreSQL 16 on, whoever makes a role is a member that may not become it.
  if not pg_catalog.pg_has_role(
    current_user,
    'treadle_owner',
    case when current_setting('server_version_num')::integer < 160000 then 'member' else 'set' end
  ) then
    execute format('grant treadle_owner to %I', current_user);
  end if;
end;
$$;
