-- Stage 00: rules that every table, type and sequence keeps, read from the catalog.
begin;
\ir support/catalog.sql
select no_plan();

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
