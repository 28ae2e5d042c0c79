-- Stage 00: rules that every function, table and role of schema aivedio keeps, read from the catalog.
begin;
select no_plan();

create temporary view schema_function as
select
  function.oid, function.proname as name, function.prosecdef, function.proconfig, function.proargnames,
  function.proacl, function.prosrc, function.provolatile, function.proowner, function.prorettype,
  -- Text without comments, so that a sentence about a statement is not taken for one.
  regexp_replace(function.prosrc, '--[^\n]*|/\*.*?\*/', '', 'g') as code
from pg_proc as function
where function.pronamespace = 'aivedio'::regnamespace;

create temporary view edge_role as
select role.oid, role.rolname as name
from pg_roles as role
where role.rolname in (
  'aivedio_webhook', 'aivedio_inbox', 'aivedio_poll', 'aivedio_submit', 'aivedio_relay',
  'aivedio_consumer', 'aivedio_gateway', 'aivedio_app', 'aivedio_operator'
);

-- Which functions a function calls, and the closure of that.
create temporary view call as
select caller.name as caller, callee.name as callee
from schema_function as caller
join schema_function as callee on caller.code ~ ('aivedio\.' || callee.name || '\M\s*\(');

create temporary view reach as
with recursive step as (
  select function.name as caller, function.name as callee from schema_function as function
  union
  select step.caller, call.callee from step join call on call.caller = step.callee
)
select step.caller, step.callee from step;

create temporary view may_execute as
select edge_role.name as role, function.name as function
from edge_role
cross join schema_function as function
where has_function_privilege(edge_role.oid, function.oid, 'execute');

-- Names and shape.

select is_empty(
  $$ select name from schema_function where not coalesce(proconfig, '{}') @> array['search_path=""'] $$,
  'every function pins an empty search_path'
);

select is_empty(
  $$ select name from schema_function group by name having count(*) > 1 $$,
  'no function is overloaded'
);

select is_empty(
  $$ select name from schema_function where coalesce(obj_description(oid, 'pg_proc'), '') !~ '^Stage \d0: ' $$,
  'every function has a comment that names its stage'
);

select is_empty(
  $$ select name, arg from schema_function, unnest(proargnames) as arg where arg !~ '^p_' $$,
  'every parameter starts with p_'
);

select is_empty(
  $$ select name from schema_function where proowner <> 'aivedio_owner'::regrole $$,
  'every function belongs to aivedio_owner'
);

select is_empty(
  $$
    select trigger.tgname
    from pg_trigger as trigger
    join pg_class as relation on relation.oid = trigger.tgrelid
    where relation.relnamespace = 'aivedio'::regnamespace
      and not trigger.tgisinternal
  $$,
  'no trigger carries a rule'
);

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
      and function in ('create_task', 'start_attempt', 'request_cancel', 'add_member')
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
  array['create_task'],
  'create_task alone makes tasks'
);

select set_eq(
  $$ select name from schema_function where code ~* '(update|delete\s+from|merge\s+into)\s+aivedio\.project_streams\M' $$,
  array['_emit'],
  '_emit alone moves a stream''s head, and nobody deletes one'
);

-- Time, snapshots, locks.

select set_eq(
  $$
    select name
    from schema_function
    where code ~* '\m(now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\s*\('
      or code ~* '\m(current_timestamp|current_date|current_time|localtimestamp|localtime)\M'
  $$,
  array['_advance_mark', '_clock', '_uuid7'],
  'time comes from _clock; only ids carry the wall clock, and queue marks save writes by it'
);

select is_empty(
  $$
    select name
    from schema_function
    where name in (
        'read_snapshot', 'list_snapshot', 'read_events_after', 'read_events_before', 'streams_moved', 'may_access',
        'normalise', 'next_poll_in', 'read_webhook_profiles', 'pipeline_status', 'why_waiting', 'database_id'
      )
      and provolatile <> 's'
  $$,
  'readers see one snapshot: they are STABLE'
);

select is_empty(
  $$
    select name
    from schema_function
    where provolatile <> 'v'
      and code ~* '\m(insert\s+into|update\s+aivedio|delete\s+from|nextval|setval|pg_notify|for\s+(no\s+key\s+)?update)\M'
  $$,
  'what writes or locks is VOLATILE'
);

select is_empty(
  $$ select name from schema_function where code ~* '\mfor\s+(update|share)\M' $$,
  'row locks are FOR NO KEY UPDATE, which foreign keys do not wait for'
);

select set_eq(
  $$ select name from schema_function where code ~* '\mwhen\s+others\M' $$,
  array['_apply_callbacks'],
  'only the inbox catches every error, to isolate a poison row; it raises again what is not the row''s fault'
);

-- Tables.

select is_empty(
  $$
    select relation.relname
    from pg_class as relation
    where relation.relnamespace = 'aivedio'::regnamespace
      and relation.relkind in ('r', 'p', 'v')
      and not relation.relispartition
      and relation.relname not in ('schema_migrations', 'schema_checksums')
      and obj_description(relation.oid, 'pg_class') is null
  $$,
  'every table has a comment'
);

select is_empty(
  $$
    select type.typname
    from pg_type as type
    join pg_class as relation on relation.oid = type.typrelid
    where type.typnamespace = 'aivedio'::regnamespace
      and relation.relkind = 'c'
      and coalesce(obj_description(type.oid, 'pg_type'), obj_description(relation.oid, 'pg_class')) is null
  $$,
  'every type has a comment'
);

select is_empty(
  $$
    select hot.name
    from (values
      ('project_streams', 50), ('generation_tasks', 50), ('task_attempts', 50), ('media_operations', 50),
      ('queue_marks', 30), ('poll_quotas', 30)
    ) as hot (name, most)
    join pg_class as relation on relation.oid = ('aivedio.' || hot.name)::regclass
    where coalesce(
        (select option_value::integer from pg_options_to_table(relation.reloptions) where option_name = 'fillfactor'),
        100
      ) > hot.most
  $$,
  'hot tables leave room for updates that touch no index'
);

select is_empty(
  $$
    select sequence.seqrelid::regclass
    from pg_sequence as sequence
    join pg_class as relation on relation.oid = sequence.seqrelid
    where relation.relnamespace = 'aivedio'::regnamespace
      and (sequence.seqcache <> 1 or sequence.seqcycle)
  $$,
  'no sequence hands out blocks or starts again'
);

select is_empty(
  $$
    select sequence.seqrelid::regclass
    from pg_sequence as sequence
    where sequence.seqrelid in (
        'aivedio.task_event_ids'::regclass, 'aivedio.outbox_ids'::regclass, 'aivedio.observation_ids'::regclass
      )
      and sequence.seqmax > 9007199254740991
  $$,
  'ids that leave the database stay below 2^53'
);

select is_empty(
  $$
    select constraint_entry.conname
    from pg_constraint as constraint_entry
    join pg_class as relation on relation.oid = constraint_entry.conrelid
    where relation.relnamespace = 'aivedio'::regnamespace
      and constraint_entry.contype = 'f'
      and (relation.relkind = 'p' or relation.relispartition)
  $$,
  'partitioned tables have no foreign keys'
);

select is_empty(
  $$ select partitioned.partrelid::regclass from pg_partitioned_table as partitioned where partitioned.partdefid <> 0 $$,
  'no table has a default partition'
);

select is_empty(
  $$
    select partition.inhrelid::regclass
    from pg_inherits as partition
    join (values
      ('aivedio.task_events'::regclass, array['task_id', 'task_version']),
      ('aivedio.outbox_events'::regclass, array['aggregate_id', 'aggregate_version'])
    ) as parent (oid, columns) on parent.oid = partition.inhparent
    join pg_class as relation on relation.oid = partition.inhrelid and relation.relkind = 'r'
    where not exists (
      select
      from pg_index as index
      where index.indrelid = partition.inhrelid
        and index.indisunique
        and parent.columns = (
          select array_agg(column_entry.attname::text order by key.place)
          from unnest(index.indkey) with ordinality as key (attnum, place)
          join pg_attribute as column_entry
            on column_entry.attrelid = index.indrelid and column_entry.attnum = key.attnum
        )
    )
  $$,
  'each partition has its own unique key of task and version'
);

select finish();
rollback;
