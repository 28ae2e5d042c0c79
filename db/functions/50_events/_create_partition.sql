/*
 * Stage 50 · events · _create_partition
 *
 * Makes the partition that holds ids from p_low, unless it exists. Made as a table of its own with
 * the range as a CHECK and then attached: readers of the parent are not blocked, and the attach
 * scans nothing. Each partition carries the unique key that a partitioned table cannot have.
 *
 * Called by   create_partition, _after_restore
 * Writes      the catalog
 * Locks       the parent, SHARE UPDATE EXCLUSIVE
 */
create or replace function aivedio._create_partition(
  p_parent text,
  p_low    bigint
)
returns boolean
language plpgsql
volatile
set search_path = ''
as $_create_partition$
declare
  v_high constant bigint := p_low + aivedio._setting('partition_ids')::bigint;
  v_name constant text := p_parent || '_p' || p_low;
  v_id   constant text := (aivedio._partitioned(p_parent)).id_column;
begin
  if pg_catalog.to_regclass('aivedio.' || v_name) is not null then
    return false;
  end if;

  execute pg_catalog.format(
    'create table aivedio.%I (like aivedio.%I including all excluding identity, constraint %I check (%I >= %s and %I < %s))',
    v_name, p_parent, v_name || '_range', v_id, p_low, v_id, v_high
  );

  if p_parent = 'task_events' then
    execute pg_catalog.format(
      'create unique index %I on aivedio.%I (task_id, task_version)', v_name || '_version', v_name
    );
  elsif p_parent = 'outbox_events' then
    execute pg_catalog.format(
      'create unique index %I on aivedio.%I (aggregate_id, aggregate_version)', v_name || '_version', v_name
    );
    execute pg_catalog.format('alter table aivedio.%I set (fillfactor = 70)', v_name);
  end if;

  execute pg_catalog.format(
    'alter table aivedio.%I attach partition aivedio.%I for values from (%s) to (%s)', p_parent, v_name, p_low, v_high
  );
  execute pg_catalog.format('alter table aivedio.%I drop constraint %I', v_name, v_name || '_range');
  return true;
end;
$_create_partition$;

comment on function aivedio._create_partition is
  'Stage 50: make and attach the partition for ids from p_low on; false when it exists.';
