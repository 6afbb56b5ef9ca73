-- roles: the least-privilege roles of treadle. They belong to the cluster, not to one database.
--
-- treadle_owner     owns every object, never logs in
-- treadle_producer  enqueues, cancels what it enqueued, reads results
-- treadle_worker    claims, heartbeats and finishes tasks
-- treadle_observer  reads the views
-- treadle_operator  everything above, and decisions: retry, pause, drain
--
-- Safe to run repeatedly, even in two sessions at once. To use a role: grant treadle_worker to
-- alice;
--
-- No role of treadle needs temporary objects. By default every login may create them; if no other
-- program needs them, revoke that right:
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
        -- Another session, perhaps migrating another database, created it first.
        when duplicate_object or unique_violation then null;
        when insufficient_privilege then
          raise exception using
            errcode = 'TR305',
            message = format('role %s is missing, %s may not create roles', v_role, current_user),
            detail = jsonb_build_object('role', v_role)::text,
            hint = 'Run sql/roles.sql once as a role with CREATEROLE, then migrate again.';
      end;
    end if;
  end loop;

  -- Grants only what is missing: a grant writes to the shared catalog.
  if not pg_catalog.pg_has_role('treadle_operator', 'treadle_producer', 'member') then
    grant treadle_producer to treadle_operator;
  end if;
  if not pg_catalog.pg_has_role('treadle_operator', 'treadle_worker', 'member') then
    grant treadle_worker to treadle_operator;
  end if;
  if not pg_catalog.pg_has_role('treadle_operator', 'treadle_observer', 'member') then
    grant treadle_observer to treadle_operator;
  end if;
  -- From PostgreSQL 16 on, the creator of a role is a member but may not become it.
  if not pg_catalog.pg_has_role(
    current_user,
    'treadle_owner',
    case when current_setting('server_version_num')::integer < 160000 then 'member' else 'set' end
  ) then
    execute format('grant treadle_owner to %I', current_user);
  end if;
end;
$$;
