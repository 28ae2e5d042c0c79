-- Stage 00: who may do what, and that each table has one writer, read from the catalog.
begin;
\ir support/catalog.sql
select no_plan();

-- Who may do what.

select is_empty(
  $$ select name from schema_function where has_function_privilege('public', oid, 'execute') $$,
  'PUBLIC may execute nothing'
);

select is_empty(
  $$
    select name
    from schema_function
    where name like '\_%'
      and (prosecdef or exists (
        select from aclexplode(proacl) as grant_entry where grant_entry.grantee <> 'aivedio_owner'::regrole
      ))
  $$,
  'a private function is neither granted nor security definer'
);

select is_empty(
  $$ select name from schema_function where name not like '\_%' and not prosecdef $$,
  'a public function is security definer'
);

select is_empty(
  $$
    select name
    from schema_function
    where name not like '\_%'
      and name not in (select may_execute.function from may_execute)
  $$,
  'a public function is granted to somebody'
);

select is_empty(
  $$
    select may_execute.role, may_execute.function, reach.callee
    from may_execute
    join reach on reach.caller = may_execute.function
    join schema_function as callee on callee.name = reach.callee
    where may_execute.role in (
        'aivedio_webhook', 'aivedio_inbox', 'aivedio_poll', 'aivedio_relay', 'aivedio_consumer'
      )
      and callee.code ~* 'insert\s+into\s+aivedio\.(generation_tasks|task_attempts)\M'
  $$,
  'what providers and brokers send can make neither a task nor an attempt'
);

select is_empty(
  $$
    select role, function
    from may_execute
    where role <> 'aivedio_submit'
      and function in ('claim_submits', 'settle_submit', 'claim_cancels', 'settle_cancel')
  $$,
  'only the submit edge asks a provider for anything'
);

select is_empty(
  $$
    select role, function
    from may_execute
    where role not in ('aivedio_app', 'aivedio_gateway', 'aivedio_operator')
      and function in ('create_task', 'create_external_task', 'start_attempt', 'request_cancel', 'add_member')
  $$,
  'only the application, its gateway and operators command tasks'
);

select is_empty(
  $$
    select edge_role.name, relation.relname
    from edge_role
    cross join pg_class as relation
    where relation.relnamespace in (
        'aivedio'::regnamespace, 'pgmq'::regnamespace
      )
      and case
        when relation.relkind in ('r', 'p', 'v', 'm')
          then has_table_privilege(
              edge_role.oid, relation.oid, 'select, insert, update, delete, truncate, references, trigger'
            )
            or has_any_column_privilege(edge_role.oid, relation.oid, 'select, insert, update, references')
        when relation.relkind = 'S' then has_sequence_privilege(edge_role.oid, relation.oid, 'usage, select, update')
      end
  $$,
  'no edge role has a privilege on a table, a view or a sequence'
);

select is_empty(
  $$
    select edge_role.name, namespace.nspname
    from edge_role
    cross join pg_namespace as namespace
    where namespace.nspname in ('aivedio', 'pgmq')
      and has_schema_privilege(edge_role.oid, namespace.oid, 'create')
  $$,
  'no edge role may create anything'
);

select is_empty(
  $$
    select edge_role.name, granted.rolname
    from edge_role
    join pg_auth_members as membership on membership.member = edge_role.oid
    join pg_roles as granted on granted.oid = membership.roleid
  $$,
  'no edge role inherits from another role'
);

select is_empty(
  $$
    select role.rolname
    from pg_roles as role
    where (role.oid in (select edge_role.oid from edge_role) or role.rolname = 'aivedio_owner')
      and (role.rolsuper or role.rolcreaterole or role.rolcreatedb or role.rolbypassrls or role.rolreplication)
  $$,
  'no role of ours has a power over the cluster'
);

select is(
  (select role.rolcanlogin from pg_roles as role where role.rolname = 'aivedio_owner'),
  false,
  'nobody logs in as aivedio_owner'
);

-- One writer.

select set_eq(
  $$ select name from schema_function where code ~* '(insert\s+into|update|delete\s+from|merge\s+into)\s+aivedio\.task_events\M' $$,
  array['_emit'],
  '_emit alone writes task_events'
);

select set_eq(
  $$ select name from schema_function where code ~* 'insert\s+into\s+aivedio\.outbox_events\M' $$,
  array['_emit'],
  '_emit alone writes new outbox rows'
);

select is_empty(
  $$
    select name
    from schema_function
    where code ~* 'delete\s+from\s+aivedio\.outbox_events\M|merge\s+into\s+aivedio\.outbox_events\M'
      or substring(code from '(?i)update\s+?aivedio\.outbox_events\M.*?\mset\M(.*?)\m(where|returning|from)\M')
        ~* '\m(aggregate_\w+|event_type|payload|shard|created_at)\s*='
  $$,
  'the relay marks outbox rows and changes nothing else of them'
);

select set_eq(
  $$ select name from schema_function where code ~* '(update|delete\s+from|merge\s+into)\s+aivedio\.generation_tasks\M' $$,
  array['_emit'],
  '_emit alone changes tasks'
);

select set_eq(
  $$ select name from schema_function where code ~* 'insert\s+into\s+aivedio\.generation_tasks\M' $$,
  array['_create_task'],
  '_create_task alone makes tasks'
);

select set_eq(
  $$ select name from schema_function where code ~* '(update|delete\s+from|merge\s+into)\s+aivedio\.project_streams\M' $$,
  array['_emit'],
  '_emit alone moves a stream''s head, and nobody deletes one'
);

select finish();
rollback;
