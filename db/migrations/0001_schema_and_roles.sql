-- migrate:up
-- 0001  One owner, one role per edge.  An edge may call functions; none may touch a table.
--
-- Roles belong to the cluster, so another database of it may have made them already, perhaps
-- at this very moment: every form of "somebody did it first" is success.
do $roles$
declare
  v_role    text;
  v_is_ours boolean;
begin
  foreach v_role in array array[
    'aivedio_owner', 'aivedio_webhook', 'aivedio_inbox', 'aivedio_poll', 'aivedio_submit', 'aivedio_relay',
    'aivedio_consumer', 'aivedio_gateway', 'aivedio_app', 'aivedio_operator'
  ]
  loop
    -- Looked for first: where a DBA made the roles, whoever migrates needs no CREATEROLE.
    if not exists (select from pg_catalog.pg_roles as known where known.rolname = v_role) then
      begin
        execute pg_catalog.format('create role %I nologin', v_role);
      exception
        when duplicate_object or unique_violation then
          null;
      end;
    end if;

    -- Whoever migrates must be able to act as the owner, and embedded processes as their role.
    -- From PostgreSQL 16 on, who creates a role may administer it but not yet act as it.
    for v_try in 1..10 loop
      if pg_catalog.current_setting('server_version_num')::integer >= 160000 then
        v_is_ours := pg_catalog.pg_has_role(current_user, v_role, 'set')
                 and pg_catalog.pg_has_role(current_user, v_role, 'usage');
      else
        v_is_ours := pg_catalog.pg_has_role(current_user, v_role, 'member');
      end if;
      exit when v_is_ours;
      begin
        execute pg_catalog.format('grant %I to current_user', v_role);
      exception
        when internal_error then  -- "tuple concurrently updated": another database of this cluster
          perform pg_catalog.pg_sleep(0.05);
        when insufficient_privilege then
          raise exception 'role may not be granted to whoever migrates'
            using errcode = 'insufficient_privilege',
                  detail  = pg_catalog.format('role %s exists, and %s may not administer it', v_role, current_user),
                  hint    = pg_catalog.format(
                    'Who made it, or a superuser, should run: grant %I to %I', v_role, current_user
                  );
      end;
    end loop;
  end loop;
end;
$roles$;

create schema if not exists aivedio;
grant usage, create on schema aivedio to aivedio_owner;
grant usage on schema aivedio to
  aivedio_webhook, aivedio_inbox, aivedio_poll, aivedio_submit, aivedio_relay,
  aivedio_consumer, aivedio_gateway, aivedio_app, aivedio_operator;
comment on schema aivedio is
  'AiVedio control plane: the state of AI video jobs. Functions are the interface; tables are private.';

-- New functions are callable by nobody until their own file grants them.  This must not be narrowed
-- to "in schema aivedio": per-schema defaults can add privileges, never revoke them.
alter default privileges for role aivedio_owner revoke execute on functions from public;

-- migrate:down
-- Forward only: a later migration corrects an earlier one.
