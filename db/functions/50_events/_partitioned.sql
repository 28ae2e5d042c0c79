/*
 * Stage 50 · events · _partitioned
 *
 * The tables that are partitioned by ranges of their id, with what is peculiar to each.
 *
 * Called by   _after_restore, _create_partition, _first_id, _last_id, end_partition, drop_partition
 * Writes      nothing
 * Locks       nothing
 * Raises      VC901  p_parent is not such a table
 */
create or replace function aivedio._partitioned(p_parent text)
returns aivedio.partitioned_table
language plpgsql
immutable
set search_path = ''
as $_partitioned$
declare
  v_table aivedio.partitioned_table;
begin
  v_table := case p_parent
    when 'task_events' then
      row(p_parent, 'aivedio.task_event_ids', 'event_id', 'created_at', 'retention_days_events')
    when 'outbox_events' then
      row(p_parent, 'aivedio.outbox_ids', 'id', 'created_at', 'retention_days_outbox')
    when 'observations' then
      row(p_parent, 'aivedio.observation_ids', 'id', 'judged_at', 'retention_days_observations')
  end;

  if v_table.parent is null then
    raise exception 'not a partitioned table of this schema'
      using errcode = 'VC901',
            detail  = pg_catalog.format('table %s', p_parent),
            hint    = 'Use task_events, outbox_events or observations.';
  end if;

  return v_table;
end;
$_partitioned$;

comment on function aivedio._partitioned is
  'Stage 50: sequence, columns and retention setting of a table that is partitioned by ranges of its id.';
