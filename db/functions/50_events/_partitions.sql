/*
 * Stage 50 · events · _partitions
 *
 * The partitions that a table has, lowest ids first, as the catalog knows them: their size is a setting, which
 * may have been another one when they were made.
 *
 * Called by   end_partition, drop_partition, keep_partitions, checkup
 * Writes      nothing
 * Locks       nothing
 */
create or replace function aivedio._partitions(p_parent text)
returns setof aivedio.partition_range
language sql
stable
set search_path = ''
as $_partitions$
  select
    partition.relname::text,
    (pg_catalog.regexp_match(bound.text, 'FROM \(''?(\d+)''?\)'))[1]::bigint as low,
    (pg_catalog.regexp_match(bound.text, 'TO \(''?(\d+)''?\)'))[1]::bigint
  from pg_catalog.pg_inherits as inherits
  join pg_catalog.pg_class as partition on partition.oid = inherits.inhrelid
  cross join lateral pg_catalog.pg_get_expr(partition.relpartbound, partition.oid) as bound (text)
  where inherits.inhparent = ('aivedio.' || p_parent)::regclass
  order by low;
$_partitions$;

comment on function aivedio._partitions is
  'Stage 50: the partitions of a table with the ids that they hold, lowest first.';
