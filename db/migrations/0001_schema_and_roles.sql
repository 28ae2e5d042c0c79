-- migrate:up
-- 0001  One owner, one role per edge.  An edge may call functions; none may touch a table.
--
-- Roles belong to the cluster, so another database of it may have made them already, perhaps
-- at this very moment: both "already exists" answers are success.
do $roles$
declare
  v_role text;
begin
  foreach v_role in array array[
    'aivedio_owner', 'aivedio_webhook', 'aivedio_inbox', 'aivedio_poll', 'aivedio_submit', 'aivedio_relay',
    'aivedio_consumer', 'aivedio_gateway', 'aivedio_app', 'aivedio_operator'
  ]
  loop
    begin
      execute pg_catalog.format('create role %I nologin', v_role);
    exception
      when duplicate_object or unique_violation then
        null;
    end;
    -- Whoever migrates must be able to act as the owner, and embedded processes as their role.
    if not pg_catalog.pg_has_role(current_user, v_role, 'member') then
      execute pg_catalog.format('grant %I to current_user', v_role);
    end if;
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
